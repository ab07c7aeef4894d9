//go:build !seededbugs

package main

import (
	"fmt"
	"slices"
)

// switchOff refuses bugs of package rules, which this build can't seed.
func switchOff(bug string) error {
	if bug == "" || slices.Contains(ownBugs, bug) {
		return nil
	}
	return fmt.Errorf("-bug %s: build with -tags seededbugs", bug)
}
