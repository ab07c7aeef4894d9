package main

import (
	"flag"
	"fmt"
	"slices"

	"github.com/leasehold/leasehold/internal/proof/seeded"
	"github.com/leasehold/leasehold/internal/proof/sim"
)

func init() {
	flag.Func("off", "take the safety rule of this `name` out, in a build with seeded bugs", func(name string) error {
		if !slices.Contains(seeded.Rules, seeded.Rule(name)) {
			return fmt.Errorf("want one of %v", seeded.Rules)
		}
		draw = func(seed uint64) sim.Config { return sim.Draw(seed).Aim(seeded.Rule(name)) }
		return seeded.SwitchOn(name)
	})
}
