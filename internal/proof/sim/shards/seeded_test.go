package shards

import (
	"testing"

	"github.com/leasehold/leasehold/internal/proof/seeded"
)

// Without any one of the rules by which slices are owned, the observer sees two owners, or a token that doesn't rise.
func TestEveryShardRuleIsNeeded(t *testing.T) {
	defer func() { _ = seeded.SwitchOn("") }()
	for _, rule := range seeded.ShardRules {
		t.Run(string(rule), func(t *testing.T) {
			if err := seeded.SwitchOn(string(rule)); err != nil {
				t.Skip(err)
			}
			for name := range aims {
				l, _ := aim(t, name) // without a rule a run may come to something else
				if err := l.Err(); err != nil {
					t.Logf("%s: %v", name, err)
					return
				}
			}
			for seed := range uint64(5000) {
				for _, k := range kinds {
					if err := run(t, seed, k).Err(); err != nil {
						t.Logf("%s, seed %d: %v", k.name, seed, err)
						return
					}
				}
			}
			t.Error("nothing notices that it is gone")
		})
	}
}
