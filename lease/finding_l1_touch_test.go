package lease_test

import (
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

// silences are what may befall a copy that has no answer.
var silences = map[string]faulty.Fault{
	"never arrives":       {Drop: true},
	"has its answer lost": {LoseReply: true, Silent: true},
	"arrives late":        {ApplyLate: 2 * attempt, Silent: true},
}

// The first copy of each touch has no answer. The second one has, so the lease lives on, and is never near its end.
func TestFinding_L1_ATouchIsSentAgain(t *testing.T) {
	for name, fault := range silences {
		t.Run("the first copy "+name, func(t *testing.T) {
			inShared(t, func(t *testing.T, _ *world, st *shared, clk *clocktest.Clock, s *lease.Session) {
				l := st.under(t, s, "job")
				st.touched()
				st.firstOf("job", fault)
				for range 10 * ttl / attempt {
					time.Sleep(attempt)
					if valid(t, l); l.Left() < validity-ttl/4-2*attempt {
						t.Fatalf("%v left", l.Left())
					}
				}
				if got := len(st.touched()); got > 90 { // 40 touches of two copies each
					t.Errorf("%d touches in 10 TTLs", got)
				}
			})
		})
	}
}

// A lease is extended from before the first copy of its touch was sent, whichever copy lands.
func TestFinding_L1_ATouchCountsFromItsFirstCopy(t *testing.T) {
	for name, fault := range silences {
		t.Run("the first copy "+name, func(t *testing.T) {
			inShared(t, func(t *testing.T, _ *world, st *shared, clk *clocktest.Clock, s *lease.Session) {
				l := st.under(t, s, "job")
				st.touched()
				st.firstOf("job", fault)
				for len(st.touched()) == 0 {
					time.Sleep(time.Millisecond)
				}
				first := clk.Now()
				time.Sleep(3 * attempt / 2)
				if got := len(st.touched()); got != 1 {
					t.Fatalf("%d further copies", got)
				}
				st.refuse(math.MaxInt)
				for l.Context().Err() == nil {
					time.Sleep(time.Millisecond)
					synctest.Wait()
				}
				if lasted := clk.Now().Sub(first); lasted > validity || lasted < validity-2*time.Millisecond {
					t.Errorf("it ended %v after the first copy was sent, want %v", lasted, validity)
				}
				if err := s.Check(); err != nil {
					t.Errorf("the session: %v", err)
				}
			})
		})
	}
}

// Somebody takes the name while copies of a touch are on their way. The copy that meets that ends the lease; the answer to another one, of before, doesn't bring
// it back, and none that lands late changes what the taker wrote.
func TestFinding_L1_ALateCopyOfATouchBringsNoTermBack(t *testing.T) {
	for name, fault := range map[string]faulty.Fault{
		"its answer is late": {ReplyDelay: 3 * attempt},
		"it lands late":      {ApplyLate: 3 * attempt, Silent: true},
		"it lands twice":     {ApplyLate: 3 * attempt, ApplyTwice: true, ReplyDelay: 3 * attempt},
	} {
		t.Run(name, func(t *testing.T) {
			inShared(t, func(t *testing.T, w *world, st *shared, clk *clocktest.Clock, s *lease.Session) {
				l, beside := st.under(t, s, "job"), st.under(t, s, "beside")
				st.touched()
				st.firstOf("job", fault)
				for len(st.touched()) == 0 {
					time.Sleep(time.Millisecond)
				}
				until := l.ValidUntil()
				time.Sleep(attempt / 2)
				w.Edit("job", func(r *store.Record) { r.Owner = "other" })
				others := w.Get("job")
				time.Sleep(attempt)
				lostWith(t, l, lease.CauseTaken)
				if clk.Now() >= until {
					t.Error("it would have ended by then")
				}
				time.Sleep(ttl)
				lostWith(t, l, lease.CauseTaken)
				if now := w.Get("job"); now.Version != others.Version {
					t.Errorf("%+v was written after %+v", now, others)
				}
				valid(t, beside)
			})
		})
	}
}

// A lease that was just acquired is read before it is touched, and no other is touched meanwhile. A read that has no answer is sent again.
func TestFinding_L1_TheReadBeforeATouchIsSentAgain(t *testing.T) {
	inShared(t, func(t *testing.T, _ *world, st *shared, _ *clocktest.Clock, s *lease.Session) {
		job := st.under(t, s, "job")
		st.touched()
		reads := 0
		st.SetPlan(func(op faulty.Op) faulty.Fault {
			st.mu.Lock()
			defer st.mu.Unlock()
			if op.Kind != faulty.Get || op.Key != "fresh" {
				return faulty.Fault{}
			}
			reads++
			return faulty.Fault{Drop: reads == 1}
		})
		time.Sleep(ttl/4 - time.Millisecond) // just before a look
		st.under(t, s, "fresh")
		time.Sleep(attempt + 2*time.Millisecond)
		if got := st.touched(); reads != 2 || !slices.Contains(got, "fresh") || !slices.Contains(got, "job") {
			t.Errorf("%v were touched, after %d reads", got, reads)
		}
		valid(t, job)
	})
}
