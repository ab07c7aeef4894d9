package identity

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/internal/pools"
	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/store/faulty"
)

// writes are the writes that claims send, those that are refused too, and those of releases.
type writes struct{ leases, windows, index, releases, reads, lists atomic.Int64 }

func (y *writes) plan(op faulty.Op) faulty.Fault {
	switch {
	case !strings.Contains(op.Key, "identity/"): // sessions
	case op.Kind == faulty.List:
		y.lists.Add(1)
	case op.Kind != faulty.Put:
		y.reads.Add(1)
	case strings.HasPrefix(op.Key, pools.KeyPrefix):
		if op.Record.Owner == "" {
			y.releases.Add(1)
		} else {
			y.leases.Add(1)
		}
	case strings.Contains(op.Key, "/value/"):
		if w, err := readWindow(op.Record); err == nil && w.Open {
			y.windows.Add(1)
		} else {
			y.releases.Add(1)
		}
	default:
		var p pool
		if err := json.Unmarshal(op.Record.Data, &p); err == nil && p.Last.Equal(time.Now().Add(wallOffset)) { // as of this instant: an offer
			y.releases.Add(1)
		} else {
			y.index.Add(1)
		}
	}
	return faulty.Fault{Delay: rand.N(20 * time.Millisecond), ReplyDelay: rand.N(20 * time.Millisecond)}
}

// Many processes claim, use and release the values of a pool without a pause: fewer than 3 writes a claim, whether it has room for all
// of them or is wanted ten times over.
func TestTurnover(t *testing.T) {
	for _, c := range []struct {
		processes, cycles int
		use               time.Duration
	}{{50, 10, time.Second}, {60, 8, 10 * time.Second}, {600, 1, 10 * time.Second}} {
		t.Run(fmt.Sprintf("%d of 64 for %v", c.processes, c.use), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := world{t, leasetest.New(t)}
				var y writes
				var claims, took atomic.Int64
				var wg sync.WaitGroup
				for range c.processes {
					p := w.process(y.plan)
					wg.Go(func() {
						for n := 0; n < c.cycles; {
							begin := time.Now()
							h, err := Claim(t.Context(), p.s, "machines", Options{Values: Values{Range: "0-63"}, Window: time.Hour})
							took.Add(int64(time.Since(begin)))
							if errors.Is(err, ErrExhausted) {
								time.Sleep(rand.N(4 * time.Second))
								continue
							}
							if err != nil {
								t.Error(err)
								return
							}
							n++
							claims.Add(1)
							time.Sleep(rand.N(c.use))
							p.release(h, h.Floor())
						}
					})
				}
				wg.Wait()
				n := float64(claims.Load())
				all := float64(y.leases.Load()+y.windows.Load()+y.index.Load()) / n
				t.Logf("%v claims, of %v each: %.2f writes (%.2f of leases, %.2f of windows, %.2f of the index), %.1f for a release; %.1f reads, %d lists in all",
					n, time.Duration(float64(took.Load())/n).Round(time.Millisecond), all, float64(y.leases.Load())/n, float64(y.windows.Load())/n,
					float64(y.index.Load())/n, float64(y.releases.Load())/n, float64(y.reads.Load())/n, y.lists.Load())
				if all >= 3 {
					t.Errorf("%.2f writes a claim", all)
				}
				if y.lists.Load() > 20 {
					t.Errorf("the pool was listed %d times", y.lists.Load())
				}
			})
		})
	}
}
