package identity

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/internal/pools"
	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/store/faulty"
)

// crashed returns a world whose pool has so many values, all of them of processes that have died, and those values.
func crashed(t *testing.T, all string, n int) (w world, values []string) {
	t.Helper()
	w = world{t, leasetest.New(t)}
	for range n {
		p := w.process(nil)
		values = append(values, p.claim(ranged(all)).Value())
		p.Cut()
	}
	time.Sleep(2 * ttl)
	return w, values
}

var errBroken = errors.New("broken")

// A value that can't be looked at keeps nobody from that of a dead holder: among 64, on the first look.
func TestFinding_O2_OneFailedAcquireEndsNoLook(t *testing.T) {
	for range 10 { // the order is a random one
		synctest.Test(t, func(t *testing.T) {
			w, dead := crashed(t, "0-63", 1)
			var live []string
			for range 63 {
				live = append(live, w.process(nil).claim(Options{}).Value())
			}
			var looking atomic.Bool // the candidates before that are no look
			q := w.process(func(op faulty.Op) faulty.Fault {
				if op.Kind == faulty.List {
					looking.Store(true)
				}
				if looking.Load() && op.Key == pools.Key("machines", live[7]) {
					return faulty.Fault{Err: errBroken}
				}
				return faulty.Fault{Delay: time.Millisecond}
			})
			if h, err := Claim(t.Context(), q.s, "machines", Options{}); err != nil || h.Value() != dead[0] {
				t.Fatalf("%v: %v, want %s", h, err, dead[0])
			}
		})
	}
}

// A look that has failed keeps nobody waiting: the next claimant looks at once.
func TestFinding_O2_AFailedLookKeepsNobodyWaiting(t *testing.T) {
	for _, kind := range []faulty.Kind{faulty.Put, faulty.List} {
		synctest.Test(t, func(t *testing.T) {
			w, values := crashed(t, "0-3", 4)
			q := w.process(func(op faulty.Op) faulty.Fault {
				for _, value := range values {
					if op.Kind == kind && (op.Key == pools.Key("machines", value) || kind == faulty.List) {
						return faulty.Fault{Err: errBroken}
					}
				}
				return faulty.Fault{}
			})
			if h, err := Claim(t.Context(), q.s, "machines", Options{}); !errors.Is(err, errBroken) {
				t.Fatalf("%v: %v", h, err)
			}
			begun := time.Now()
			w.process(nil).claim(Options{})
			if took := time.Since(begun); took > ttl/10 {
				t.Errorf("the next one had a value after %v", took)
			}
		})
	}
}
