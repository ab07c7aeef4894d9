package lessor

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

// A request that gets no answer, since no replica has what the primary wrote for it, is sent again to another server. That one reads the
// grant, and tells it only when a replica has it: else the failover gives the name to somebody else beside it.
func TestFinding_S5_AGrantIsNotToldOnAPlainRead(t *testing.T) {
	for kept, session := range map[string]bool{"by its own renewals": false, "by a session": true} {
		for end, lost := range map[string]bool{"the replica comes back": false, "the primary dies": true} {
			t.Run(kept+", "+end, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) { grantedInDoubt(t, w.Clk, session, lost) })
			})
		}
	}
}

func grantedInDoubt(t *testing.T, clk clock.Clock, session, lost bool) {
	t.Helper()
	pair := faulty.NewPair(clk)
	server := func() *Registry {
		st := pair.Open(store.ReadLeader)
		r := New(st, Options{Clock: clk})
		t.Cleanup(func() { _, _ = r.Close(), st.Close() })
		return r
	}
	first, second := server(), server()
	req := wants("a", 0)
	req.ID = "caller/1"
	if session {
		g, err := first.OpenSession(t.Context(), "a", 4*ttl, nil) // requests that get no answer take their time
		if err != nil {
			t.Fatal(err)
		}
		req.Session = g.Record.Key
	}
	pair.Detach()
	if g, err := first.Acquire(t.Context(), req); err == nil {
		t.Fatalf("granted on what only the primary has: %+v", g)
	}
	shown, err := pair.Primary().Get(t.Context(), "job")
	if err != nil || shown.Owner != "a" {
		t.Fatalf("the primary doesn't show the claim: %+v, %v", shown, err)
	}
	if err := first.Close(); err != nil { // or it frees what nobody was told, sooner or later
		t.Error(err)
	}
	if g, err := second.Acquire(t.Context(), req); err == nil {
		t.Errorf("another server tells a grant that only the primary has: %+v", g)
	}
	if !lost {
		pair.Attach()
		if g, err := second.Acquire(t.Context(), req); err != nil || g.Record.Token != shown.Token {
			t.Errorf("with the replica back: %+v, %v", g, err)
		}
		return
	}
	pair.FailOver()
	other := granted(t, second, wants("b", time.Minute))
	if other.Owner != "b" {
		t.Errorf("%+v", other)
	}
}
