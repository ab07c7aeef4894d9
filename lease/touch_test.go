package lease_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

// shared is a store whose records other programs share.
type shared struct {
	*faulty.Store
	mu       sync.Mutex
	refused  int             // so many touches from now on are
	touches  []string        // the keys of those that were tried
	underWay map[string]int  // touches, by key
	alone    map[string]bool // the last touch of that key was, when it began
}

// touchInfo is where a record has the nonce of its last touch.
const touchInfo = "touch"

func (s *shared) Touch(ctx context.Context, rec store.Record, nonce string) (store.Record, error) {
	if err := s.begin(rec.Key); err != nil {
		return store.Record{}, err
	}
	rec = rec.Clone()
	rec.Info = map[string]string{touchInfo: nonce}
	now, err := s.Store.Put(ctx, rec)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.underWay[rec.Key]--
	if conflict, ok := errors.AsType[*store.ConflictError](err); ok {
		if now = conflict.Current; now.Info[touchInfo] == nonce && now.Owner == rec.Owner {
			return now, nil
		}
	}
	return now, err
}

// begin takes note of a touch.
func (s *shared) begin(key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.touches = append(s.touches, key)
	if s.refused > 0 {
		s.refused--
		return errors.New("forbidden: patch leases")
	}
	s.alone[key] = s.underWay[key] == 0
	s.underWay[key]++
	return nil
}

// refuse has so many touches refused from now on.
func (s *shared) refuse(touches int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = touches
}

// touched returns the keys that were touched since it was asked for last.
func (s *shared) touched() (keys []string) {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	keys, s.touches = s.touches, nil
	return keys
}

// firstOf has that fault befall the first copy of each touch of key.
func (s *shared) firstOf(key string, fault faulty.Fault) {
	s.SetPlan(func(op faulty.Op) faulty.Fault {
		s.mu.Lock()
		defer s.mu.Unlock()
		if op.Kind == faulty.Put && op.Key == key && s.alone[key] {
			return fault
		}
		return faulty.Fault{}
	})
}

// attempt is how long a touch is waited for alone. Validity is no multiple of it, so that no touch is tried as a lease ends unless that is meant.
const attempt = 700 * time.Millisecond

// inShared runs f with a session in a store whose records other programs share.
func inShared(t *testing.T, f func(t *testing.T, w *world, st *shared, clk *clocktest.Clock, s *lease.Session)) {
	t.Helper()
	leasetest.Run(t, func(t *testing.T, w *world) {
		h := w.Host(nil)
		st := &shared{Store: h.Net, underWay: map[string]int{}, alone: map[string]bool{}}
		f(t, w, st, h.Clk, h.Node(st, lease.Options{Attempt: attempt}).Open())
	})
}

// under is Acquire of a name that the session keeps.
func (s *shared) under(t *testing.T, session *lease.Session, key string) *lease.Lease {
	t.Helper()
	l, err := session.Acquire(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// The first 16 leases are touched: at once, and then every TTL/4, by one request each. Those that are over leave their places to others.
func TestTouches(t *testing.T) {
	inShared(t, func(t *testing.T, _ *world, st *shared, _ *clocktest.Clock, s *lease.Session) {
		var leases []*lease.Lease
		acquire := func(count, fresh int) {
			t.Helper()
			for range count {
				gets := st.Count(faulty.Get)
				l := st.under(t, s, fmt.Sprint("job/", len(leases)))
				want := []string{l.Name()}
				if fresh--; fresh < 0 {
					want = nil
				}
				if got := st.touched(); !slices.Equal(got, want) {
					t.Errorf("%v were touched when %s was acquired, want %v", got, l, want)
				}
				if gets = st.Count(faulty.Get) - gets; gets > 2 { // whether the name has shares, and the record before it is touched
					t.Errorf("%d reads for %s", gets, l)
				}
				leases = append(leases, l)
			}
		}
		acquire(16, 16)
		acquire(4, 0)
		time.Sleep(time.Millisecond) // so that no look is at the edge of what is counted
		for range 3 {
			gets := st.Count(faulty.Get)
			time.Sleep(ttl / 4)
			got := st.touched()
			if slices.Sort(got); len(got) != 16 || len(slices.Compact(got)) != 16 {
				t.Errorf("%d touches of %d leases in TTL/4: %v", len(got), len(slices.Compact(got)), got)
			}
			if gets = st.Count(faulty.Get) - gets; gets != 4 { // of those that aren't touched
				t.Errorf("%d reads in TTL/4", gets)
			}
		}
		for _, l := range leases {
			release(t, l)
		}
		time.Sleep(ttl / 4)
		st.touched()
		acquire(17, 16)
	})
}

// A touch that was refused is tried again as soon as a renewal is.
func TestATouchThatFailsIsTriedAgain(t *testing.T) {
	inShared(t, func(t *testing.T, _ *world, st *shared, _ *clocktest.Clock, s *lease.Session) {
		l := st.under(t, s, "job")
		st.touched()
		st.refuse(1)
		for len(st.touched()) == 0 {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(attempt)
		if got := st.touched(); len(got) != 1 {
			t.Errorf("%d touches within %v after one that was refused", len(got), attempt)
		}
		valid(t, l)
	})
}

// A touch meets what an outsider did to the record.
func TestATouchMeetsAnOutsider(t *testing.T) {
	for name, outsider := range map[string]func(w *world){
		"deletes it": func(w *world) { w.Wipe("job") },
		"takes it":   func(w *world) { w.Edit("job", func(r *store.Record) { r.Owner = "other" }) },
	} {
		t.Run(name, func(t *testing.T) {
			inShared(t, func(t *testing.T, w *world, st *shared, _ *clocktest.Clock, s *lease.Session) {
				l, beside := st.under(t, s, "job"), st.under(t, s, "beside")
				time.Sleep(ttl)
				outsider(w)
				time.Sleep(ttl / 4)
				lostWith(t, l, lease.CauseTaken)
				valid(t, beside)
				if touch(w, "beside"); beside.Check() != nil {
					t.Error(beside.Check())
				}
				time.Sleep(ttl)
				valid(t, beside)
			})
		})
	}
}

// The touches of a lease fail, and its session's renewals don't: it ends when other programs may take its record, and says why. The
// session, and its leases that were never touched, live on.
func TestFinding_S16_ALeaseWhoseTouchesFailEnds(t *testing.T) {
	inShared(t, func(t *testing.T, _ *world, st *shared, clk *clocktest.Clock, s *lease.Session) {
		l := st.under(t, s, "job")
		for i := range 15 {
			st.under(t, s, fmt.Sprint("beside/", i))
		}
		synctest.Wait()
		untouched := st.under(t, s, "untouched")
		time.Sleep(10 * ttl)
		if err := l.Check(); err != nil {
			t.Fatalf("while it is touched: %v", err)
		}
		st.refuse(math.MaxInt)
		deadline := l.ValidUntil()
		for ctx := l.Context(); ctx.Err() == nil; synctest.Wait() {
			deadline = l.ValidUntil()
			time.Sleep(time.Millisecond)
		}
		if late := clk.Now().Sub(deadline); late < 0 || late > time.Millisecond {
			t.Errorf("its context ended %v after its validity", late)
		}
		var lost *lease.LostError
		if err := l.Check(); !errors.As(err, &lost) || lost.Cause != lease.CauseOutage || lost.Err == nil {
			t.Errorf("%v: want the touch that failed", err)
		}
		if err := s.Check(); err != nil {
			t.Errorf("the session: %v", err)
		}
		valid(t, untouched)
	})
}

// A touch that meets another version of its own term is tried again at once. One that meets another's term leaves that as it is: to touch it
// would renew it.
func TestATouchThatMeetsAnotherVersion(t *testing.T) {
	inShared(t, func(t *testing.T, w *world, st *shared, _ *clocktest.Clock, s *lease.Session) {
		job, beside := st.under(t, s, "job"), st.under(t, s, "beside")
		time.Sleep(time.Millisecond) // so that no look is at the edge of what is counted
		st.touched()
		touch(w, "job")
		time.Sleep(ttl / 4)
		got := st.touched()
		if slices.Sort(got); !slices.Equal(got, []string{"beside", "job", "job"}) {
			t.Errorf("touched: %v", got)
		}
		valid(t, job)
		w.Edit("beside", func(r *store.Record) { r.Owner = "other" })
		others := w.Get("beside")
		time.Sleep(ttl / 4)
		lostWith(t, beside, lease.CauseTaken)
		if now := w.Get("beside"); now.Version != others.Version {
			t.Errorf("%+v was written after %+v", now, others)
		}
	})
}
