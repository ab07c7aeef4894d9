package election_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

// cheap is a store whose Waits are.
type cheap struct{ store.Store }

func (c cheap) Wait(ctx context.Context, key, version string) (store.Record, error) {
	return store.Wait(ctx, c.Store, key, version)
}

func (c cheap) Properties() store.Properties {
	p := store.Describe(c.Store)
	p.CheapWait = true
	return p
}

// Where Waits are cheap, a candidate that waits writes its session's renewals, and reads next to nothing.
func TestFinding_N1_ACandidateFollowsRatherThanReads(t *testing.T) {
	const candidates, periods = 60, 20 // more than the list has room for
	inWorld(t, func(t *testing.T, w *world) {
		w.cheap = true
		var reads, writes atomic.Int64
		for i := range candidates {
			w.candidate(fmt.Sprintf("c%02d", i), election.Options{}, func(p *process) {
				p.plan = func(op faulty.Op) faulty.Fault {
					switch op.Kind {
					case faulty.Get:
						reads.Add(1)
					case faulty.Put:
						writes.Add(1)
					}
					return faulty.Fault{Delay: 5 * time.Millisecond}
				}
			})
			time.Sleep(ttl / 7)
			synctest.Wait()
		}
		time.Sleep(2 * ttl)
		reads.Store(0)
		writes.Store(0)
		time.Sleep(periods * ttl)
		per := func(n *atomic.Int64) float64 { return float64(n.Load()) / candidates / periods }
		t.Logf("a candidate reads %.2f times in a TTL, and writes %.2f times", per(&reads), per(&writes))
		if per(&reads) > 0.35 { // the list, every four TTLs
			t.Errorf("a candidate reads %.2f times in a TTL", per(&reads))
		}
		if per(&writes) > 3.8 { // the renewals, and those of the leader
			t.Errorf("a candidate writes %.2f times in a TTL", per(&writes))
		}
	})
}

// Who follows notices a death as soon as who reads does: the leader's name is taken after its TTL, and the dead are taken off the list.
func TestFinding_N1_TheDeadAreNoticed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.cheap = true
		var all []*process
		for i := range 4 {
			all = append(all, w.candidate(fmt.Sprint("c", i), election.Options{}))
			time.Sleep(time.Second)
		}
		time.Sleep(10 * ttl)
		w.expect("c0 leads")
		all[0].Cut()
		all[2].Cut()
		time.Sleep(ttl + ttl/10)
		if l := w.leader(); l.Owner != all[1].m.Holder() && l.Owner != all[3].m.Holder() {
			t.Errorf("%q leads, a TTL after the leader's death", l.Owner)
		}
		time.Sleep(2 * ttl)
		state, err := election.ReadState(t.Context(), w.st, "job")
		if err != nil {
			t.Fatal(err)
		}
		if len(state.Candidates) != 2 || state.Candidates[0].Name != "c1" || state.Candidates[1].Name != "c3" {
			t.Errorf("on the list: %+v", state.Candidates)
		}
	})
}
