package engines

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/storetest"
	"github.com/leasehold/leasehold/sweep"
)

// TestFinding_N4_TheWayBackToAnElector: after a crash, client-go's elector would wait 366 days for a lease beyond the first 16 of a session. A
// sweep frees it, as docs/from-client-go.md says, and the elector takes it. Its token is not forgotten.
func TestFinding_N4_TheWayBackToAnElector(t *testing.T) {
	const ttl = 6 * time.Second
	srv := servers.Kubernetes(t, servers.Shared())
	client, namespace := kubeClient(t, srv, srv.Addr), theNamespace(t, srv)
	st := kubernetesKind.prepare(t, srv).open(t, srv.Addr)
	m, err := lease.NewManager(st, lease.Options{TTL: ttl})
	must(t, err)
	t.Cleanup(func() { m.Close() })
	s, err := m.OpenSession(t.Context())
	must(t, err)
	prefix := "back-" + strings.ToLower(rand.Text()[:8]) + "-"
	leases := map[string]*lease.Lease{}
	for i := range 20 {
		name := fmt.Sprint(prefix, i)
		leases[name], err = s.Acquire(t.Context(), name)
		must(t, err)
	}
	var long []string
	storetest.Eventually(t, func() error {
		long = nil
		for name := range leases {
			obj, err := client.Leases(namespace).Get(t.Context(), name, metav1.GetOptions{})
			must(t, err)
			if *obj.Spec.LeaseDurationSeconds == 366*24*60*60 {
				long = append(long, name)
			}
		}
		if len(long) != 4 {
			return fmt.Errorf("%d Leases of 20 show 366 days, want 4", len(long))
		}
		return nil
	})
	must(t, m.Close()) // as good as a crash

	elected := func(within time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		defer cancel()
		stop, err := elect(ctx, client, namespace, long[0])
		if err == nil {
			err = stop()
		}
		return err
	}
	if err := elected(3 * ttl); err == nil {
		t.Error("the elector took a lease of 366 days")
	}
	_, err = sweep.Run(t.Context(), st, sweep.Options{Prefix: prefix})
	must(t, err)
	must(t, elected(time.Minute))
	rec, err := st.Get(t.Context(), long[0])
	must(t, err)
	if rec.Token <= leases[long[0]].Token() {
		t.Errorf("token %d after %d", rec.Token, leases[long[0]].Token())
	}
}
