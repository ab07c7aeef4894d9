package election_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/election"
)

// A name that has become free goes to the best of those who may lead, however it became free, and whether the store vouches for
// the age of records or each finds out by itself, and at another time, that the leader is gone. Who is best takes it at once;
// the others take it a tenth of the TTL later at most.
func TestTheBestTakesAFreeName(t *testing.T) {
	type way struct {
		leave  func(leader, best *process)
		winner string
		within time.Duration
	}
	const step = ttl / 30
	ways := map[string]way{
		"released": {func(leader, _ *process) { leader.end() }, "p9", time.Second},
		"died":     {func(leader, _ *process) { leader.Cut() }, "p9", ttl + ttl/3 + time.Second},
		"both died": {func(leader, best *process) {
			leader.Cut()
			best.Cut()
		}, "p8", ttl + ttl/3 + step + time.Second},
	}
	for name, c := range ways {
		for _, ageless := range []bool{false, true} {
			for seed := range uint64(10) {
				t.Run(fmt.Sprintf("%s/ageless=%t/%d", name, ageless, seed), func(t *testing.T) {
					inWorld(t, func(t *testing.T, w *world) {
						w.Ageless = ageless
						rng := rand.New(rand.NewPCG(seed, 1))
						leader := w.candidate("leader", election.Options{})
						time.Sleep(time.Second)
						w.expect("leader leads")
						var best *process
						for _, i := range rng.Perm(4) {
							p := w.candidate(fmt.Sprint("p", 6+i), election.Options{Priority: 6 + i})
							if i == 3 {
								best = p
							}
							time.Sleep(time.Duration(rng.Int64N(int64(ttl / 2))))
						}
						time.Sleep(ttl)
						c.leave(leader, best)
						began := time.Now()
						story := ""
						for !strings.Contains(story, " leads") && time.Since(began) < c.within {
							time.Sleep(ttl / 1000)
							story += w.told()
						}
						if took := time.Since(began); !strings.HasSuffix(story, c.winner+" leads") || took > c.within {
							t.Errorf("after %v: %q, want %s within %v", took, story, c.winner, c.within)
						}
					})
				})
			}
		}
	}
}

// Equals don't wait for each other, nor does anybody for one that may not lead.
func TestNobodyWaitsForOneThatMayNotLead(t *testing.T) {
	for name, better := range map[string]election.Options{
		"equal": {}, "worse": {Priority: -1}, "not eligible": {Priority: 5, Eligible: func() bool { return false }},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				leader := w.candidate("leader", election.Options{})
				time.Sleep(time.Second)
				w.candidate("a", election.Options{})
				b := w.candidate("b", better)
				time.Sleep(ttl)
				b.Cut() // so that nobody but a can take it
				w.told()
				leader.end()
				time.Sleep(20 * time.Millisecond)
				w.expect("leader stopped, a leads")
			})
		})
	}
}
