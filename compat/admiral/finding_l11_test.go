package admiral

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// What others do to the row beside its holder's writes is no sign of life: what a standby shows of the holder's term runs out.
func TestFinding_L11_AStandbyCountsSignsOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := clocktest.New(0)
		o, s := lease.NewObserver(nil, lease.ObserverOptions{Clock: clk}), NewState(clk)
		rec := store.Record{Key: "job", Owner: "other", Token: 3, TTL: 10 * time.Second, Nonce: "n", Version: "1"}
		left := func(want time.Duration) {
			t.Helper()
			s.saw(o.Saw(rec), "me", "")
			if got := s.Status(); got.ExpiresIn != want || got.Owner != "other" {
				t.Errorf("%+v, want %v left", got, want)
			}
		}
		left(10 * time.Second)
		time.Sleep(6 * time.Second)
		rec.Version = "2" // a label, say
		left(4 * time.Second)
		rec.Version, rec.Nonce = "3", "m"
		left(10 * time.Second)
		time.Sleep(11 * time.Second)
		left(0)
	})
}
