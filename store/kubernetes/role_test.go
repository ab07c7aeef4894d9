package kubernetes

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// TestRole binds the Role to an account that may do nothing else: everything works. Without any one of its verbs something
// doesn't, and says so.
func TestRole(t *testing.T) {
	srv := servers.Kubernetes(t, servers.Shared())
	verbs := []string{"get", "list", "watch", "create", "patch", "delete"}
	if role := Role("ns", "leasehold"); !strings.Contains(role, `verbs: ["`+strings.Join(verbs, `", "`)+`"]`) {
		t.Fatalf("the Role has other verbs than %v:\n%s", verbs, role)
	}
	for _, without := range append(verbs, "") {
		t.Run("without "+without, func(t *testing.T) {
			s, namespace := boundStore(t, srv, without)
			failed := useAll(t, s)
			if without == "" {
				if len(failed) != 0 {
					t.Errorf("the Role doesn't suffice: %v", failed)
				}
				return
			}
			if len(failed) == 0 {
				t.Errorf("everything works: the Role grants more than is needed")
			}
			for what, err := range failed {
				// The verb that is missing, the namespace and what to do about it.
				for _, want := range []string{"may not " + without + " Leases", namespace, "leasehold init kubernetes"} {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%s: %q is not in: %v", what, want, err)
					}
				}
				if errors.Is(err, store.ErrUnknownOutcome) {
					t.Errorf("%s: refused, and yet unknown: %v", what, err)
				}
			}
		})
	}
}

// userToken returns that of the user who may do nothing until a role is bound.
func userToken(t *testing.T, srv *servers.Server) string {
	t.Helper()
	if srv.Extra["user-token"] == "" {
		const why = "the server that is up has no kubeconfig of the user leasehold beside the administrator's"
		if os.Getenv("LEASEHOLD_TEST_REQUIRE") == "all" {
			t.Fatal(why)
		}
		t.Skip("not tried here: " + why)
	}
	return srv.Extra["user-token"]
}

// boundStore returns a store of the account that was given the Role, less one verb, in a namespace of its own.
func boundStore(t *testing.T, srv *servers.Server, without string) (*Store, string) {
	t.Helper()
	namespace := newNamespace(t, srv)
	role := Role(namespace, "leasehold")
	if without != "" {
		role = strings.Replace(strings.Replace(role, `"`+without+`", `, "", 1), `, "`+without+`"]`, "]", 1)
	}
	apply(t, srv, "/apis/rbac.authorization.k8s.io/v1/namespaces/"+namespace+"/roles", role)
	apply(t, srv, "/apis/rbac.authorization.k8s.io/v1/namespaces/"+namespace+"/rolebindings", `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: leasehold}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: leasehold}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: leasehold}]
`)
	c := config(t, srv, srv.Addr)
	c.BearerToken = userToken(t, srv)
	s := open(t, dial(t, c), namespace)
	// The server learns of the binding a little later.
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		verb := map[bool]func() error{
			true:  func() error { _, err := s.Get(t.Context(), "bound"); return err },
			false: func() error { _, err := keys(t.Context(), s, "bound"); return err },
		}[without != "get"]
		if err := verb(); err == nil || errors.Is(err, store.ErrNotFound) {
			return s, namespace
		} else if time.Now().After(deadline) {
			t.Fatalf("the binding never took effect: %v", err)
		}
	}
}

func keys(ctx context.Context, s store.Store, prefix string) (found []string, err error) {
	for rec, err := range s.List(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		found = append(found, rec.Key)
	}
	slices.Sort(found)
	return found, nil
}

// useAll uses everything that a store offers, and returns what failed.
func useAll(t *testing.T, s *Store) map[string]error {
	t.Helper()
	ctx, failed := t.Context(), map[string]error{}
	try := func(what string, err error) {
		if err != nil {
			failed[what] = err
		}
	}
	rec, err := s.Put(ctx, held("k", 1))
	try("Put of a new record", err)
	if err != nil {
		return failed
	}
	_, err = s.Get(ctx, "k")
	try("Get", err)
	changed, err := s.Put(ctx, rec)
	try("Put of a change", err)
	if err == nil {
		rec = changed
	}
	_, err = keys(ctx, s, "")
	try("List", err)
	_, err = store.Wait(ctx, s, "k", "")
	try("Wait", err)
	try("Delete", s.Delete(ctx, "k", rec.Version))
	return failed
}

// TestInspect looks at a server as it should be, with the Role alone and without a right.
func TestInspect(t *testing.T) {
	srv := servers.Kubernetes(t, servers.Shared())
	for without, want := range map[string]string{"": "", "delete": "permission to delete", "create": "permission to create", "watch": "permission to watch"} {
		s, namespace := boundStore(t, srv, without)
		var bad []string
		for _, f := range s.Inspect(t.Context()) {
			t.Logf("%s: %s: %s; %s", f.What, f.Status, f.Detail, f.Advice)
			if f.Status != driver.StatusOK {
				bad = append(bad, f.What)
				if f.Advice == "" {
					t.Errorf("%s: no advice", f.What)
				}
			}
		}
		if got := strings.Join(bad, ","); got != want {
			t.Errorf("without %q: findings %q, want %q", without, got, want)
		}
		left, err := keys(t.Context(), open(t, dial(t, config(t, srv, srv.Addr)), namespace), "")
		if err != nil || len(left) != map[bool]int{true: 1}[without == "delete"] {
			t.Errorf("without %q: left behind %v, %v", without, left, err)
		}
	}
}

func TestInspectWarnsOfTheClientsLimit(t *testing.T) {
	srv := servers.Kubernetes(t, servers.Shared())
	c := config(t, srv, srv.Addr)
	c.QPS = 0 // client-go's own choice
	for _, f := range open(t, dial(t, c), newNamespace(t, srv)).Inspect(t.Context()) {
		if f.What == "client limit" && f.Status == driver.StatusWarn && strings.Contains(f.Advice, "QPS") && strings.Contains(f.Detail, " 5 ") {
			return
		}
	}
	t.Error("nothing was said of a limit of 5 requests a second")
}
