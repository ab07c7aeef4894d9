//go:build seededbugs

package main

import (
	"flag"
	"fmt"
	"slices"

	"github.com/leasehold/leasehold/internal/rules"
	"github.com/leasehold/leasehold/internal/sim"
)

func init() {
	flag.Func("off", "switch the safety rule of this `name` off", func(name string) error {
		if !slices.Contains(rules.Rules, rules.Rule(name)) {
			return fmt.Errorf("want one of %v", rules.Rules)
		}
		rules.SwitchOff(rules.Rule(name))
		draw = func(seed uint64) sim.Config { return sim.Draw(seed).Aim(rules.Rule(name)) }
		return nil
	})
}
