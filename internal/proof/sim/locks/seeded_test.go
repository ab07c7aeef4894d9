package locks

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/seeded"
	"github.com/leasehold/leasehold/internal/proof/sim/linear"
)

// Without any one of the rules by which shares are granted, some history isn't that of a lock.
func TestEveryShareRuleIsNeeded(t *testing.T) {
	defer func() { _ = seeded.SwitchOn("") }()
	for _, rule := range slices.Concat(seeded.ShareRules, []seeded.Rule{seeded.RuleWholeTTL, seeded.RuleRaiseToken}) {
		t.Run(string(rule), func(t *testing.T) {
			if err := seeded.SwitchOn(string(rule)); err != nil {
				t.Skip(err)
			}
			for seed := range uint64(2000) { // most within one, dead-share-taken within 121; how goroutines are scheduled counts too
				for _, k := range kinds {
					h, _ := run(t, seed, k.history, k.use)
					err := h.Check(time.Minute)
					if err != nil && !errors.Is(err, linear.ErrUnsettled) {
						t.Logf("%s, seed %d: %v", k.name, seed, err)
						return
					}
				}
			}
			t.Error("nothing notices that it is gone")
		})
	}
}
