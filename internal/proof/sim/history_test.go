package sim

import (
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/sim/linear"
)

// What the processes of a run see of the store is linearizable, outcomes that they never learned left open. A store that
// loses what it had is not, so runs with such a one are left out.
func TestHistories(t *testing.T) {
	checked, ops := 0, 0
	for seed := uint64(1); checked < 60; seed++ {
		cfg := Draw(seed)
		cfg.Chance.Wipe, cfg.Chance.Restore = 0, 0
		var h linear.History
		if r := Run(cfg, Options{History: &h}); len(r.Violations) > 0 {
			t.Fatalf("seed %d: %v", seed, r.Violations)
		}
		if err := h.Check(time.Minute); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		checked++
		ops += h.Len()
	}
	t.Logf("%d histories, %d operations", checked, ops)
}
