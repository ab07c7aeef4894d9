//go:build seededbugs

package main

import "github.com/leasehold/leasehold/internal/rules"

// switchOff seeds a bug of package rules.
func switchOff(bug string) error {
	rules.SwitchOff(rules.Rule(bug))
	return nil
}
