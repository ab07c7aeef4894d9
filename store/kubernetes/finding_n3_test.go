package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/storetest"
)

// TestFinding_N3_TransitionsBeginAgain: a Lease whose transitions are as many as its field holds can be taken, and tokens rise.
func TestFinding_N3_TransitionsBeginAgain(t *testing.T) {
	t.Parallel()
	s, _ := fresh(t)
	obj, most := electorLease(t, s, "billing", "controller-0", 1), int32(math.MaxInt32)
	obj.Spec.LeaseTransitions = &most
	if _, err := s.leases.Update(t.Context(), obj, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	before, err := s.Get(t.Context(), "billing")
	if err != nil {
		t.Fatal(err)
	}
	l := waitsFor(t, s, "billing")
	if l.Token() <= before.Token {
		t.Errorf("token %d after %d", l.Token(), before.Token)
	}
	if got := *leaseObject(t, s, "billing").Spec.LeaseTransitions; got != 0 {
		t.Errorf("%d transitions", got)
	}
	ours, err := s.Get(t.Context(), "billing")
	if err != nil {
		t.Fatal(err)
	}
	// The elector counts on from there.
	obj = leaseObject(t, s, "billing")
	who, one := "controller-1", int32(1)
	obj.Spec.HolderIdentity, obj.Spec.LeaseTransitions = &who, &one
	if _, err := s.leases.Update(t.Context(), obj, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if rec, err := s.Get(t.Context(), "billing"); err != nil || rec.Owner != who || rec.Token <= ours.Token {
		t.Errorf("%+v, %v, want a token above %d", rec, err, ours.Token)
	}
}

// waitsFor acquires a name that a dead elector holds.
func waitsFor(t *testing.T, s *Store, name string) *lease.Lease {
	t.Helper()
	m, err := lease.NewManager(s, lease.Options{TTL: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	var held *lease.HeldError
	if _, err := m.TryAcquire(t.Context(), name); !errors.As(err, &held) {
		t.Fatalf("while it is held: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	l, err := m.Acquire(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestFinding_N3_AnyHolderCanBeWaitedFor: Kubernetes takes holders that no record can hold. They hold their names like others.
func TestFinding_N3_AnyHolderCanBeWaitedFor(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	for what, holder := range map[string]string{"long": long, "newline": "controller\n0", "control": "a\x00b"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s, _ := fresh(t)
			electorLease(t, s, "billing", holder, 1)
			before, err := s.Get(t.Context(), "billing")
			if err != nil || before.Owner == "" {
				t.Fatalf("%+v, %v", before, err)
			}
			if l := waitsFor(t, s, "billing"); l.Token() <= before.Token {
				t.Errorf("token %d after %d", l.Token(), before.Token)
			}
			if rec, err := s.Get(t.Context(), "billing"); err != nil || rec.Past[0].Owner != before.Owner {
				t.Errorf("%+v, %v", rec, err)
			}
		})
	}
	seen := map[string]bool{}
	for _, holder := range []string{long + "1", long + "2", "a\n", `a\n`, "a\xff", "a\xfe", strings.Repeat("\n", store.MaxKey+1)} {
		owner := foreignOwner(holder)
		if err := driver.Check(store.Record{Key: "k", Owner: owner, Token: 1, TTL: time.Second}); err != nil || seen[owner] {
			t.Errorf("%q is %q: %v, or another holder's", holder, owner, err)
		}
		seen[owner] = true
	}
}

// TestFinding_N3_ANamespaceThatIsMissing: where the account may look for namespaces, a missing one is not called a missing right; where it
// may not, the error names both.
func TestFinding_N3_ANamespaceThatIsMissing(t *testing.T) {
	t.Parallel()
	srv := servers.Kubernetes(t, servers.Shared())
	cfg := config(t, srv, srv.Addr)
	cfg.BearerToken = userToken(t, srv)
	s := open(t, dial(t, cfg), "nowhere-n3")
	if err := s.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), "or there is no such namespace") || !strings.Contains(err.Error(), "kubectl get namespace nowhere-n3") {
		t.Errorf("of an account without any right: %v", err)
	}
	apply(t, srv, "/apis/rbac.authorization.k8s.io/v1/clusterroles", `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: look-n3}
rules: [{apiGroups: [""], resources: ["namespaces"], verbs: ["get"]}]
`)
	apply(t, srv, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: look-n3}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: look-n3}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: looker-n3}]
`)
	cfg = config(t, srv, srv.Addr)
	cfg.Impersonate.UserName = "looker-n3"
	s = open(t, dial(t, cfg), "nowhere-n3")
	storetest.Eventually(t, func() error { // the server learns of the binding a little later
		err := s.Ping(t.Context())
		if err == nil || !strings.Contains(err.Error(), "kubectl create namespace nowhere-n3") || strings.Contains(err.Error(), "may not") {
			return fmt.Errorf("of an account that may get namespaces: %w", err)
		}
		return nil
	})
}
