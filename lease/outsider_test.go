package lease_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

// touch writes a record as it is, past all networks: it gets another version, and its holder has shown no sign of life.
func touch(w *world, key string) {
	w.T.Helper()
	if _, err := w.DB.Open().Put(w.T.Context(), w.Get(key)); err != nil && !errors.Is(err, store.ErrConflict) {
		w.T.Fatal(err)
	}
}

// An outsider who touches a record now and then keeps no dead holder's name: neither a lease that keeps itself nor a session.
func TestFinding_S17_TouchesKeepNoDeadHolder(t *testing.T) {
	for name, acquire := range map[string]func(n *node) (l *lease.Lease, record string){
		"lease":   func(n *node) (*lease.Lease, string) { return n.Take("job"), "job" },
		"session": func(n *node) (*lease.Lease, string) { s := n.Open(); return n.Under(s, "job"), s.Key() },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.Ageless = true
				n, other := w.Node(lease.Options{}), w.Node(lease.Options{})
				_, record := acquire(n)
				wait := other.Acquiring(t.Context(), "job")
				time.Sleep(time.Minute)
				n.Outage.Start() // for good: it is as good as dead
				start := time.Now()
				for range int(2 * ttl / (700 * time.Millisecond)) {
					touch(w, record)
					time.Sleep(700 * time.Millisecond)
				}
				wait.Wait(t, start, ttl+ttl/3)
			})
		})
	}
}

// A notice that the session can't read tells that some lease of it was broken, and not which.
func TestFinding_S14_ANoticeThatCantBeReadEndsTheSession(t *testing.T) {
	for name, data := range map[string]string{"no JSON": "}{", "of another shape": `{"v":2,"gone":["job"]}`, "empty": ""} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.Node(lease.Options{})
				s := n.Open()
				job, beside := n.Under(s, "job"), n.Under(s, "beside")
				rec := w.Get(s.Key())
				rec.Intervention, rec.Note, rec.Data, rec.Nonce = store.InterventionNotice, "somebody", []byte(data), rec.Nonce+"+notice"
				if _, err := w.DB.Open().Put(t.Context(), rec); err != nil {
					t.Fatal(err)
				}
				time.Sleep(ttl / 3)
				lostWith(t, job, lease.CauseBroken)
				lostWith(t, beside, lease.CauseBroken)
				if err := s.Check(); err == nil || !strings.Contains(err.Error(), "notice") {
					t.Errorf("the session: %v", err)
				}
			})
		})
	}
}

// outsiders are what an outsider may do to a record, each with what the loser says then.
func outsiders(w *world, before store.Record) map[string]struct {
	do  func()
	say string
} {
	const key = "job/1"
	edit := func(change func(*store.Record)) func() { return func() { w.Edit(key, change) } }
	return map[string]struct {
		do  func()
		say string
	}{
		"deletes it":            {func() { w.Wipe(key) }, "its record is gone"},
		"frees it":              {edit(func(r *store.Record) { r.Owner, r.TTL, r.Session = "", 0, "" }), "somebody freed it"},
		"takes it":              {edit(func(r *store.Record) { r.Owner, r.Token, r.Session = "other", r.Token+1, "" }), "other holds it under token"},
		"edits the holder":      {edit(func(r *store.Record) { r.Owner = "other" }), "other holds it under token"},
		"edits the token":       {edit(func(r *store.Record) { r.Token-- }), "of an earlier term"},
		"edits the session":     {edit(func(r *store.Record) { r.Session = ".session/x" }), "names another session"},
		"restores it":           {func() { w.Restore(before) }, "of an earlier term"},
		"breaks it, by no tool": {edit(func(r *store.Record) { r.Intervention, r.Note, r.Session = store.InterventionBroken, "somebody", "" }), "by somebody"},
	}
}

// Whatever an outsider does to the record of a lease that a session keeps, its term ends within TTL/3 and says why; the session and
// its other leases stay. The name can be had again, under a higher token.
func TestFinding_S16_ASessionLooksAtItsLeases(t *testing.T) {
	for name := range outsiders(nil, store.Record{}) {
		for _, leases := range []int{1, 40} { // read one by one, and listed
			t.Run(fmt.Sprint(name, ", of ", leases), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					w.Unsafe = true // until it is noticed
					n := w.Node(lease.Options{})
					release(t, n.Take("job/1"))
					before := w.Get("job/1")
					s := n.Open()
					l, others := n.Under(s, "job/1"), []*lease.Lease{}
					for i := 2; i <= leases; i++ {
						others = append(others, n.Under(s, fmt.Sprint("job/", i)))
					}
					time.Sleep(time.Minute)
					valid(t, l)
					outsider := outsiders(w, before)[name]
					outsider.do()
					time.Sleep(ttl / 3)
					cause := lease.CauseTaken
					if strings.HasPrefix(name, "breaks") {
						cause = lease.CauseBroken
					}
					lostWith(t, l, cause)
					if err := fmt.Sprint(l.Check()); !strings.Contains(err, outsider.say) {
						t.Errorf("it says %q, want %q", err, outsider.say)
					}
					release(t, l)
					for _, other := range others {
						valid(t, other)
					}
					if name == "edits the holder" || name == "edits the session" || name == "takes it" {
						return // to them it is another's
					}
					if again := n.Under(s, "job/1"); again.Token() <= l.Token() {
						t.Errorf("token %d after %d", again.Token(), l.Token())
					}
				})
			})
		}
	}
}

// Where the store pushes, what an outsider does is noticed at once: of the first leases, and not of those that are let go at once.
func TestFinding_S16_WhatIsPushedIsNoticedAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.Unsafe = true // until it is noticed
		n := w.Node(lease.Options{})
		s := n.Open()
		for i := range 100 {
			release(t, n.Under(s, fmt.Sprint("short/", i)))
		}
		time.Sleep(ttl / 4)
		if waits := n.Net.Count(faulty.Wait); waits != 0 {
			t.Errorf("%d waits for what is let go at once", waits)
		}
		var leases []*lease.Lease
		for i := range 20 {
			leases = append(leases, n.Under(s, fmt.Sprint("job/", i)))
		}
		time.Sleep(ttl)
		if waits := n.Net.Count(faulty.Wait); waits != 8 {
			t.Errorf("%d waits, want 8", waits)
		}
		noticed := 0
		for i, l := range leases {
			if i%2 == 0 {
				w.Wipe(l.Name())
			} else {
				w.Edit(l.Name(), func(r *store.Record) { r.Owner = "other" })
			}
			time.Sleep(100 * time.Millisecond)
			if l.Check() != nil {
				noticed++
			}
		}
		if noticed < 8 {
			t.Errorf("%d were noticed at once", noticed)
		}
		time.Sleep(ttl / 3)
		for _, l := range leases {
			lostWith(t, l, lease.CauseTaken)
		}
	})
}

// lingering is a store whose Waits outlast those who give them up.
type lingering struct{ *faulty.Store }

func (s lingering) Properties() store.Properties {
	p := s.Store.Properties()
	p.WaitLingers = true
	return p
}

// Nothing is followed where a Wait that is given up occupies the server.
func TestFinding_S16_NoWaitsLinger(t *testing.T) {
	leasetest.Run(t, func(t *testing.T, w *world) {
		h := w.Host(nil)
		n := h.Node(lingering{h.Net}, lease.Options{})
		n.Under(n.Open(), "job")
		time.Sleep(ttl)
		if waits := h.Net.Count(faulty.Wait); waits != 0 {
			t.Errorf("%d waits", waits)
		}
	})
}

// Labels, the primitive's own data and an outage end no term.
func TestFinding_S16_WhatIsNoEnd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		s := n.Open()
		var leases []*lease.Lease
		for i := range 40 {
			leases = append(leases, n.Under(s, fmt.Sprint("job/", i)))
		}
		for range 100 {
			touch(w, "job/1")
			w.Edit("job/2", func(r *store.Record) { r.Data, r.Nonce = append(r.Data, 'x'), "edited" })
			time.Sleep(time.Second)
		}
		n.Outage.StartRefusing(errRefused)
		time.Sleep(validity / 2)
		n.Outage.End()
		time.Sleep(time.Minute)
		for _, l := range leases {
			valid(t, l)
		}
	})
}

// What looking costs: a read for each of few leases every TTL/4, a List for any number of more; and no goroutine for each.
func TestFinding_S16_WhatALookCosts(t *testing.T) {
	for leases, want := range map[int]struct{ gets, lists int }{1: {4, 0}, 16: {64, 0}, 17: {0, 4}, 200: {0, 4}} {
		t.Run(fmt.Sprint(leases), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.Node(lease.Options{})
				s := n.Open()
				for i := range leases {
					n.Under(s, fmt.Sprint("job/", i))
				}
				time.Sleep(ttl)
				goroutines := runtime.NumGoroutine()
				gets, lists := n.Net.Count(faulty.Get), n.Net.Count(faulty.List)
				time.Sleep(2 * ttl)
				gets, lists = n.Net.Count(faulty.Get)-gets, n.Net.Count(faulty.List)-lists
				if gets != 2*want.gets || lists != 2*want.lists {
					t.Errorf("%d reads and %d Lists in 2 TTLs, want %d and %d", gets, lists, 2*want.gets, 2*want.lists)
				}
				if goroutines > 20 {
					t.Errorf("%d goroutines", goroutines)
				}
			})
		})
	}
}

// A List in which a session's leases are few is not repeated: they are read.
func TestFinding_S16_AListOfOthersIsNotRepeated(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		s := n.Open()
		for i := range 1000 {
			if _, err := w.DB.Open().Put(t.Context(), store.Record{Key: fmt.Sprint("job/other", i), Nonce: "n"}); err != nil {
				t.Fatal(err)
			}
		}
		leases := map[int]*lease.Lease{}
		for i := range 17 {
			leases[i] = n.Under(s, fmt.Sprint("job/", i))
		}
		time.Sleep(10 * ttl)
		if n := n.Net.Count(faulty.List); n != 1 {
			t.Errorf("%d Lists", n)
		}
		w.Wipe("job/3")
		time.Sleep(ttl / 3)
		lostWith(t, leases[3], lease.CauseTaken)
		valid(t, leases[4])
	})
}
