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
			for _, seed := range trials(rule) {
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

// noticed has the seeds that notice rare bugs, so that they are tried first. Where they don't any longer, since the code has
// changed, all are tried.
var noticed = map[seeded.Rule]uint64{seeded.RuleShardClosed: 94, seeded.RuleShardConfirm: 357, seeded.RuleShardValid: 942}

func trials(rule seeded.Rule) []uint64 {
	all := []uint64{noticed[rule]}
	for seed := range uint64(1000) {
		all = append(all, seed)
	}
	return all
}
