// Package seeded says which seeded bug, or other mutant, is on. Only a build that was made by
// internal/proof/mutate has any: there the rewritten code asks for Bug. No other code may import it
// but tests and their tools.
package seeded

import "errors"

// ErrNotBuilt is the error of a build in which nothing is seeded.
var ErrNotBuilt = errors.New("this build has no seeded bugs: put go run ./internal/proof/mutate/cmd/seeded in front of the go command, at the root")

// SwitchOn switches the bug of that name on, and any other off; "" switches all off. It isn't for
// use while mutated code runs.
func SwitchOn(bug string) error {
	if !Built && bug != "" {
		return ErrNotBuilt
	}
	Bug = bug
	return nil
}
