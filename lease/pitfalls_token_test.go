package lease_test

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
)

// rises fails unless next has a higher token than l.
func rises(t *testing.T, how string, l, next *lease.Lease) *lease.Lease {
	t.Helper()
	if next.Token() <= l.Token() {
		t.Errorf("%s: token %d after %d", how, next.Token(), l.Token())
	}
	return next
}

func TestPitfall_F1_TokensRiseHoweverATermEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(lease.Options{}), w.node(lease.Options{})
		back := func() { // so that the time of day doesn't help
			a.clk.StepWall(-time.Hour)
			b.clk.StepWall(-time.Hour)
		}
		l := a.acquire("job")
		back()
		release(t, l)
		l = rises(t, "re-acquired by the same owner", l, a.acquire("job"))
		back()
		release(t, l)
		l = rises(t, "released", l, b.acquire("job"))
		back()
		b.outage.Start()
		l = rises(t, "expired", l, a.acquire("job"))
		b.outage.End()
		back()
		w.breaks("job", lease.EndTerm{Token: l.Token()})
		l = rises(t, "broken", l, b.acquire("job"))
		back()
		if err := l.HandOver(t.Context(), a.Holder()); err != nil {
			t.Fatal(err)
		}
		l = rises(t, "handed over", l, a.acquire("job"))
		back()
		release(t, l)
		s := b.open()
		l = rises(t, "taken under a session", l, b.under(s, "job"))
		back()
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		rises(t, "its session ended", l, a.acquire("job"))
	})
}

func TestPitfall_F2_TheSameOwnerGetsANewToken(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(lease.Options{})
		l := n.acquire("job")
		for range 5 {
			n.clk.StepWall(-time.Minute)
			release(t, l)
			l = rises(t, "re-acquired", l, n.acquire("job"))
		}
		// Lost, and taken again before anyone else came.
		n.outage.Start()
		time.Sleep(validity + time.Second)
		lostWith(t, l, lease.CauseOutage)
		n.outage.End()
		n.clk.StepWall(-time.Minute)
		l = rises(t, "re-acquired after a loss", l, n.acquire("job"))
		// Deleted, which resets a counter.
		n.clk.StepWall(24 * time.Hour)
		release(t, l)
		w.wipe("job")
		rises(t, "deleted", l, n.acquire("job"))
	})
}

func TestPitfall_F3_TokensAreOrdered(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var nodes []*node
		for i := range 5 {
			n := w.node(lease.Options{})
			n.clk.StepWall(time.Duration(i-2) * time.Minute)
			nodes = append(nodes, n)
		}
		l := nodes[0].acquire("job")
		for i := range 200 {
			release(t, l)
			l = rises(t, "released", l, nodes[i%len(nodes)].acquire("job"))
			if l.Token() > fence.MaxToken {
				t.Fatalf("token %d", l.Token())
			}
		}
	})
}

func TestPitfall_F4_TokensRiseOverALostOrRestoredStore(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.node(lease.Options{})
		l := n.acquire("job")
		backup := w.get("job")
		for range 5 {
			time.Sleep(time.Second)
			release(t, l)
			l = rises(t, "released", l, n.acquire("job"))
		}
		release(t, l)
		time.Sleep(time.Second)
		w.wipe("job")
		l = rises(t, "wiped", l, n.acquire("job"))
		release(t, l)
		time.Sleep(time.Second)
		w.restore(backup)
		rises(t, "restored", l, w.node(lease.Options{}).acquire("job"))
	})
}

func TestPitfall_F5_AHandOverMintsAToken(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(lease.Options{}), w.node(lease.Options{})
		r := &resource{t: t}
		l := a.acquire("job")
		r.admits(l)
		a.clk.StepWall(-time.Hour)
		wait := b.acquiring(t.Context(), "job")
		if err := l.HandOver(t.Context(), b.Holder()); err != nil {
			t.Fatal(err)
		}
		next := rises(t, "handed over", l, wait.wait(t, time.Now(), 0))
		r.admits(next)
		r.refuses(l)
	})
}

func TestPitfall_F6_ARequestOfAnEarlierTermOfTheSameOwner(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.node(lease.Options{}), w.node(lease.Options{})
		r := &resource{t: t}
		first := a.acquire("job")
		r.admits(first)
		release(t, first)
		second := b.acquire("job")
		r.admits(second)
		release(t, second)
		third := a.acquire("job")
		r.refuses(first) // delayed since A's first term
		r.admits(third)
		r.refuses(first)
		r.refuses(second)
		r.admits(third)
	})
}

func TestPitfall_F7_TwoHoldersOfOneToken(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.unsafe = true
		r := &resource{t: t}
		first := w.node(lease.Options{}).acquire("job")
		w.wipe("job")
		w.mu.Lock()
		w.highest["job"] = 0
		w.mu.Unlock()
		second := w.node(lease.Options{}).acquire("job") // in the same millisecond: the store had nothing to raise
		if first.Token() != second.Token() {
			t.Fatalf("tokens %d and %d", first.Token(), second.Token())
		}
		r.admits(first)
		var stale *fence.StaleError
		if err := r.write(second); !errors.As(err, &stale) || stale.Holder != first.Holder() {
			t.Errorf("the second holder of one token: %v", err)
		}
		r.admits(first)
	})
}
