package drive

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

// looked is a lease whose record is looked at.
type looked struct {
	member
	over bool
}

// looker looks at leases, and notes which it ends.
type looker struct {
	Looks[*looked]
	mu    sync.Mutex
	ended []string
}

func (r rig) looker() *looker {
	k := &looker{}
	k.Looks = Looks[*looked]{
		Store: r.net,
		Term: func(l *looked) store.Record {
			return store.Record{Key: l.key, Owner: "me", Token: l.token, Session: ".session/me"}
		},
		Over: func(l *looked) bool { return l.over },
		End: func(l *looked, cause protocol.Cause, why error) {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.ended = append(k.ended, fmt.Sprint(l.key, " ", cause == protocol.CauseBroken, " ", why != nil))
		},
	}
	return k
}

// kept stores n records of leases, and returns the leases.
func (r rig) kept(n int) (all []*looked) {
	r.Helper()
	for i := range n {
		l := &looked{member: member{fmt.Sprintf("job/%04d", i), 7}}
		r.put(store.Record{Key: l.key, Owner: "me", Token: 7, TTL: ttl, Session: ".session/me", Nonce: "n"})
		all = append(all, l)
	}
	return all
}

func (r rig) put(rec store.Record) {
	r.Helper()
	now, err := store.Load(r.Context(), r.db.Open(), rec.Key)
	if rec.Version = now.Version; err == nil {
		_, err = r.db.Open().Put(r.Context(), rec)
	}
	if err != nil {
		r.Fatal(err)
	}
}

// asked returns how many reads and Lists f costs.
func (r rig) asked(f func()) [2]int {
	gets, lists := r.net.Count(faulty.Get), r.net.Count(faulty.List)
	f()
	return [2]int{r.net.Count(faulty.Get) - gets, r.net.Count(faulty.List) - lists}
}

// Few records are read, and many are listed: of those only what the List doubts is read. Either way what others have ended is ended, and
// nothing else is: neither what has ended before, nor what can't be read.
func TestLooks(t *testing.T) {
	for n, want := range map[int][2]int{5: {4, 0}, 16: {15, 0}, 17: {4, 1}, 40: {4, 1}} {
		inRig(t, func(t *testing.T, r rig) {
			k, leases := r.looker(), r.kept(n)
			r.put(store.Record{Key: leases[0].key, Owner: "you", Token: 8, TTL: ttl, Nonce: "n"})
			r.put(store.Record{Key: leases[1].key, Owner: "me", Token: 7, TTL: ttl, Intervention: store.InterventionBroken, Nonce: "n"})
			if err := r.db.Open().Delete(t.Context(), leases[2].key, r.version(leases[2].key)); err != nil {
				t.Fatal(err)
			}
			r.put(store.Record{Key: leases[3].key, Owner: "you", Token: 8, TTL: ttl, Nonce: "n"})
			r.put(store.Record{Key: leases[4].key, Owner: "you", Token: 8, TTL: ttl, Nonce: "n"})
			leases[3].over = true
			r.net.SetPlan(func(op faulty.Op) (f faulty.Fault) {
				if op.Kind == faulty.Get && op.Key == leases[4].key {
					f.Err = store.ErrCorrupt
				}
				return f
			})
			got := r.asked(func() {
				if err := k.Look(t.Context(), leases); err != nil {
					t.Error(err)
				}
			})
			slices.Sort(k.ended)
			if all := []string{"job/0000 false true", "job/0001 true true", "job/0002 false true"}; !slices.Equal(k.ended, all) {
				t.Errorf("of %d leases %q ended, want %q", n, k.ended, all)
			}
			if got != want {
				t.Errorf("%d leases cost %d reads and %d Lists, want %v", n, got[0], got[1], want)
			}
		})
	}
}

func (r rig) version(key string) string {
	r.Helper()
	rec, err := store.Load(r.Context(), r.db.Open(), key)
	if err != nil {
		r.Fatal(err)
	}
	return rec.Version
}

// While the store doesn't answer nothing ends, and the error says so. A List of which a record can't be read leaves that to a read.
func TestLooksThatFail(t *testing.T) {
	down := errors.New("down")
	for _, c := range []struct {
		n       int
		crowded bool
		kind    faulty.Kind
		err     error
		fails   bool
		want    [2]int
	}{
		{1, false, faulty.Get, down, true, [2]int{1, 0}},
		{40, true, faulty.Get, down, true, [2]int{16, 0}}, // each of those that read ends with its first error
		{40, false, faulty.List, down, true, [2]int{0, 1}},
		{40, false, faulty.List, store.ErrCorrupt, false, [2]int{40, 1}},
	} {
		inRig(t, func(t *testing.T, r rig) {
			k, leases := r.looker(), r.kept(c.n)
			k.crowded = c.crowded
			r.net.SetPlan(func(op faulty.Op) (f faulty.Fault) {
				if op.Kind == c.kind {
					f.Err = c.err
				}
				return f
			})
			got := r.asked(func() {
				if err := k.Look(t.Context(), leases); c.fails != errors.Is(err, down) || !c.fails && err != nil {
					t.Errorf("%+v: %v", c, err)
				}
			})
			if got != c.want || k.ended != nil {
				t.Errorf("%+v: %v, and %q ended", c, got, k.ended)
			}
		})
	}
}

// A List is of what the names have in common. Where it yields others' records for the most part, records are read one by one from then
// on, up to a thousand; and some at a time.
func TestLooksInACrowd(t *testing.T) {
	for n, others := range map[int]int{17: 16*17 - 17, 20: 16*20 - 20} {
		inRig(t, func(t *testing.T, r rig) {
			k, leases := r.looker(), r.kept(n)
			for i := range others {
				r.put(store.Record{Key: fmt.Sprint("job/00/", i), Owner: "you", Token: 1, TTL: ttl, Nonce: "n"})
			}
			look := func() {
				if err := k.Look(t.Context(), leases); err != nil {
					t.Error(err)
				}
			}
			if look(); k.crowded || r.asked(look) != [2]int{0, 1} {
				t.Errorf("%d of others beside %d are too many", others, n)
			}
			r.put(store.Record{Key: "job/00/x", Owner: "you", Token: 1, TTL: ttl, Nonce: "n"})
			if look(); r.asked(look) != [2]int{n, 0} {
				t.Errorf("one more is not too many: %d beside %d", others+1, n)
			}
			began := r.Clock.Now()
			r.net.SetPlan(func(faulty.Op) faulty.Fault { return faulty.Fault{Delay: time.Second} })
			if look(); r.Clock.Now().Sub(began) != 2*time.Second {
				t.Errorf("%d reads took %v, want 2 s: 16 at a time", n, r.Clock.Now().Sub(began))
			}
		})
	}
	for n, want := range map[int][2]int{readCrowded: {readCrowded, 0}, readCrowded + 1: {0, 1}} {
		inRig(t, func(t *testing.T, r rig) {
			k, leases := r.looker(), r.kept(n)
			k.crowded = true
			got := r.asked(func() {
				if err := k.Look(t.Context(), leases); err != nil {
					t.Error(err)
				}
			})
			if got != want {
				t.Errorf("%d leases in a crowd cost %v, want %v", n, got, want)
			}
		})
	}
	for _, c := range [][3]string{{"ab", "abc", "ab"}, {"abc", "ad", "a"}, {"é", "è", ""}, {"x", "y", ""}, {"job/", "job/", "job/"}, {"xyz", "x", "x"}} {
		if got := common(c[0], c[1]); got != c[2] {
			t.Errorf("%q and %q have %q in common, want %q", c[0], c[1], got, c[2])
		}
	}
	inRig(t, func(t *testing.T, r rig) {
		k, leases := r.looker(), r.kept(17)
		r.net.SetPlan(func(op faulty.Op) faulty.Fault {
			if op.Kind == faulty.List && op.Key != "job/00" {
				t.Errorf("a List of %q, want of what the names have in common", op.Key)
			}
			return faulty.Fault{}
		})
		if err := k.Look(t.Context(), leases); err != nil {
			t.Error(err)
		}
	})
}
