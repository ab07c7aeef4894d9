package lease_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

// slowly answers everything after d: a share of it passes on the way there.
func slowly(d time.Duration, there float64) faulty.Plan {
	before := time.Duration(float64(d) * there)
	return func(faulty.Op) faulty.Fault { return faulty.Fault{Delay: before, ReplyDelay: d - before} }
}

// A store that answers everything, and each time as late as half of the validity, keeps its holder for half an hour: a renewal is not given
// up because it is slow. At half of the validity to the dot each renewal would come back in the instant in which the lease ends.
func TestFinding_L1_ASlowStoreKeepsItsHolder(t *testing.T) {
	for _, length := range []time.Duration{5 * time.Second, 15 * time.Second, time.Minute} {
		for _, there := range []float64{0, 0.5, 1} {
			for kind, session := range map[string]bool{"lease": false, "session": true} {
				t.Run(fmt.Sprintf("%v, %v there, %s", length, there, kind), func(t *testing.T) {
					inWorld(t, func(t *testing.T, w *world) {
						latency := 4*length/10 - length/1000 // the validity is 4/5 of the TTL
						n := w.Node(lease.Options{TTL: length})
						n.Plan(slowly(latency, there))
						var l *lease.Lease
						if session {
							l = n.Under(n.Open(), "job")
						} else {
							l = n.Take("job")
						}
						if l.Left() <= 0 {
							t.Fatal("announced without any validity left")
						}
						events := l.Events()
						time.Sleep(30 * time.Minute)
						synctest.Wait()
						valid(t, l)
						jeopardies := 0
						for len(events) > 0 {
							if e := <-events; e.State == lease.StateJeopardy {
								jeopardies++
							}
						}
						if rec := w.Get("job"); rec.Token != l.Token() || len(rec.Past) != 0 || !session && jeopardies == 0 {
							t.Errorf("%d terms, want one; %d times in jeopardy", 1+len(rec.Past), jeopardies)
						}
					})
				})
			}
		}
	}
}

// A store whose replica is cut off shows a renewal that a failover takes away. The copy that is sent beside it meets that: it is no answer, as long as the
// first one has none.
func TestFinding_L1_ACopyProvesNothingThatAFailoverTakesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := clocktest.New(0)
		pair := faulty.NewPair(clk)
		st := pair.Open(store.ReadLeader)
		defer st.Close()
		m, err := lease.NewManager(st, lease.Options{Clock: clk})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		l, err := m.Acquire(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		pair.Detach()
		until := l.ValidUntil()
		time.Sleep(validity - time.Second)
		if shown, err := pair.Primary().Get(t.Context(), "job"); err != nil || shown.Version == "1" {
			t.Fatalf("the primary shows %+v, %v, want a renewal", shown, err)
		}
		if got := l.ValidUntil(); got != until {
			t.Errorf("renewed until %v later by what only the primary has", got.Sub(until))
		}
		pair.FailOver()
		time.Sleep(ttl)
		if valid(t, l); l.ValidUntil() <= until {
			t.Error("what the replica has was not renewed after the failover")
		}
	})
}

// A holder whose store hangs is told of it after a twentieth of the TTL, and in jeopardy from then on. Requests go on all the while, three at a time, and none
// outlives the lease.
func TestFinding_L1_AHungStoreIsSaidAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		h := w.Host(nil)
		requests := &inFlight{Store: h.Net}
		n := h.Node(requests, lease.Options{})
		l := n.Take("job")
		events := l.Events()
		<-events
		n.Outage.Start()
		e := <-events
		if e.State != lease.StateJeopardy || e.Left < validity-ttl/3-ttl/20-time.Millisecond || !strings.Contains(e.Err.Error(), "no answer within 750ms") {
			t.Errorf("%+v", e)
		}
		before := requests.all.Load()
		time.Sleep(validity/2 - time.Second)
		synctest.Wait()
		if now, all := requests.now.Load(), requests.all.Load()-before; now > 3 || all < 3 {
			t.Errorf("%d requests under way, %d sent since", now, all)
		}
		e = <-events
		synctest.Wait()
		if e.State != lease.StateLost || requests.now.Load() != 0 {
			t.Errorf("%+v, with %d requests under way", e, requests.now.Load())
		}
		lostWith(t, l, lease.CauseOutage)
	})
}
