package main

import (
	"fmt"
	"slices"

	"github.com/leasehold/leasehold/internal/proof/seeded"
)

// switchOn switches a seeded bug on: one of the soak's own, or one of the code that it runs, in a
// build that has those.
func switchOn(bug string) error {
	if slices.Contains(ownBugs, bug) {
		return nil
	}
	if err := seeded.SwitchOn(bug); err != nil {
		return fmt.Errorf("-bug %s: %w", bug, err)
	}
	return nil
}
