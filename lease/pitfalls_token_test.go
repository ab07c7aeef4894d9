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
		a, b := w.Node(lease.Options{}), w.Node(lease.Options{})
		back := func() { // so that the time of day doesn't help
			a.Clk.StepWall(-time.Hour)
			b.Clk.StepWall(-time.Hour)
		}
		l := a.Take("job")
		back()
		release(t, l)
		l = rises(t, "re-acquired by the same owner", l, a.Take("job"))
		back()
		release(t, l)
		l = rises(t, "released", l, b.Take("job"))
		back()
		b.Outage.Start()
		l = rises(t, "expired", l, a.Take("job"))
		b.Outage.End()
		back()
		breaks(w, "job", lease.EndTerm{Token: l.Token()})
		l = rises(t, "broken", l, b.Take("job"))
		back()
		if err := l.HandOver(t.Context(), a.Holder()); err != nil {
			t.Fatal(err)
		}
		l = rises(t, "handed over", l, a.Take("job"))
		back()
		release(t, l)
		s := b.Open()
		l = rises(t, "taken under a session", l, b.Under(s, "job"))
		back()
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		rises(t, "its session ended", l, a.Take("job"))
	})
}

func TestPitfall_F2_TheSameOwnerGetsANewToken(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		l := n.Take("job")
		for range 5 {
			n.Clk.StepWall(-time.Minute)
			release(t, l)
			l = rises(t, "re-acquired", l, n.Take("job"))
		}
		// Lost, and taken again before anyone else came.
		n.Outage.Start()
		time.Sleep(validity + time.Second)
		lostWith(t, l, lease.CauseOutage)
		n.Outage.End()
		n.Clk.StepWall(-time.Minute)
		l = rises(t, "re-acquired after a loss", l, n.Take("job"))
		// Deleted, which resets a counter.
		n.Clk.StepWall(24 * time.Hour)
		release(t, l)
		w.Wipe("job")
		rises(t, "deleted", l, n.Take("job"))
	})
}

func TestPitfall_F3_TokensAreOrdered(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var nodes []*node
		for i := range 5 {
			n := w.Node(lease.Options{})
			n.Clk.StepWall(time.Duration(i-2) * time.Minute)
			nodes = append(nodes, n)
		}
		l := nodes[0].Take("job")
		for i := range 200 {
			release(t, l)
			l = rises(t, "released", l, nodes[i%len(nodes)].Take("job"))
			if l.Token() > fence.MaxToken {
				t.Fatalf("token %d", l.Token())
			}
		}
	})
}

func TestPitfall_F4_TokensRiseOverALostOrRestoredStore(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		l := n.Take("job")
		backup := w.Get("job")
		for range 5 {
			time.Sleep(time.Second)
			release(t, l)
			l = rises(t, "released", l, n.Take("job"))
		}
		release(t, l)
		time.Sleep(time.Second)
		w.Wipe("job")
		l = rises(t, "wiped", l, n.Take("job"))
		release(t, l)
		time.Sleep(time.Second)
		w.Restore(backup)
		rises(t, "restored", l, w.Node(lease.Options{}).Take("job"))
	})
}

func TestPitfall_F5_AHandOverMintsAToken(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.Node(lease.Options{}), w.Node(lease.Options{})
		r := &resource{t: t}
		l := a.Take("job")
		r.admits(l)
		a.Clk.StepWall(-time.Hour)
		wait := b.Acquiring(t.Context(), "job")
		if err := l.HandOver(t.Context(), b.Holder()); err != nil {
			t.Fatal(err)
		}
		next := rises(t, "handed over", l, wait.Wait(t, time.Now(), 0))
		r.admits(next)
		r.refuses(l)
	})
}

func TestPitfall_F6_ARequestOfAnEarlierTermOfTheSameOwner(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.Node(lease.Options{}), w.Node(lease.Options{})
		r := &resource{t: t}
		first := a.Take("job")
		r.admits(first)
		release(t, first)
		second := b.Take("job")
		r.admits(second)
		release(t, second)
		third := a.Take("job")
		r.refuses(first) // delayed since A's first term
		r.admits(third)
		r.refuses(first)
		r.refuses(second)
		r.admits(third)
	})
}

func TestPitfall_F7_TwoHoldersOfOneToken(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.Unsafe = true
		r := &resource{t: t}
		first := w.Node(lease.Options{}).Take("job")
		w.Wipe("job")
		w.Forget("job")
		second := w.Node(lease.Options{}).Take("job") // in the same millisecond: the store had nothing to raise
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
