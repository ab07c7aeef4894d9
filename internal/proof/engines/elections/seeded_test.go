package elections

import (
	"testing"

	"github.com/leasehold/leasehold/internal/proof/seeded"
)

// What the partitions are for: without one of the rules of time, they find two who lead at once.
func TestPartitionsFindWhatIsLeftOut(t *testing.T) {
	defer func() { _ = seeded.SwitchOn("") }()
	for _, rule := range []seeded.Rule{seeded.RuleSent, seeded.RuleMargin, seeded.RuleWholeTTL} {
		t.Run(string(rule), func(t *testing.T) {
			if err := seeded.SwitchOn(string(rule)); err != nil {
				t.Skip(err)
			}
			for seed := uint64(1); seed <= 300; seed++ {
				for _, x := range timings[3:] { // the tightest
					if o := run(t, draw(seed, x), x, candidates(x, func(*world, string, ...any) {})); o.overlaps > 0 {
						t.Logf("%s, seed %d: two led at once for %v", x.name, seed, o.longest)
						return
					}
				}
			}
			t.Error("nothing notices that it is gone")
		})
	}
}
