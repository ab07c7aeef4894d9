package engines

import (
	"maps"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/sweep"
)

// TestSweep has a sweep meet, on each engine, what is old, what a dead process has left behind, and what is held.
func TestSweep(t *testing.T) {
	onEach(t, trySweep)
}

func trySweep(t *testing.T, open func(t testing.TB) store.Store) {
	then := clock.System().Wall().Add(-40 * 24 * time.Hour)
	token := fence.Token(then.UnixMilli())
	_, err := open(t).Put(t.Context(), store.Record{
		Key: "old", Token: token, Nonce: "n", Past: []store.Term{{Owner: "somebody", Token: token, From: then, Until: then, Why: "released"}},
	})
	must(t, err)

	leases := map[string]*lease.Lease{}
	session := ""
	for _, who := range []string{"dead", "alive"} {
		m, err := lease.NewManager(open(t), lease.Options{TTL: deadTTL})
		must(t, err)
		t.Cleanup(func() { m.Close() })
		s, err := m.OpenSession(t.Context())
		must(t, err)
		leases[who+"/session"], err = s.Acquire(t.Context(), who+"/session")
		must(t, err)
		leases[who+"/itself"], err = m.Acquire(t.Context(), who+"/itself")
		must(t, err)
		if who == "dead" {
			session = s.Key()
			must(t, m.Close())
		}
	}

	found := map[string]sweep.Action{}
	_, err = sweep.Run(t.Context(), open(t), sweep.Options{OnFinding: func(f sweep.Finding) { found[f.Key] = f.Action }})
	must(t, err)
	want := map[string]sweep.Action{"old": sweep.Deleted, "dead/session": sweep.Freed, "dead/itself": sweep.Freed, session: sweep.Deleted}
	if !maps.Equal(found, want) {
		t.Errorf("found %v, want %v", found, want)
	}
	for _, name := range []string{"alive/session", "alive/itself"} {
		must(t, leases[name].Check())
	}
	m, err := lease.NewManager(open(t), lease.Options{TTL: deadTTL})
	must(t, err)
	defer m.Close()
	for name, before := range map[string]fence.Token{"old": token, "dead/itself": leases["dead/itself"].Token()} {
		l, err := m.TryAcquire(t.Context(), name)
		must(t, err)
		if l.Token() <= before {
			t.Errorf("%s: token %d after %d", name, l.Token(), before)
		}
		must(t, l.Release(t.Context()))
	}
}
