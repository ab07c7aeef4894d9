// Package mutate makes mutants of this project's sources: copies of functions with a change, which
// tests ought to notice. No mutant is in the checkout. An overlay (go build -overlay) puts the
// mutated files in the place of the real ones, so that what is built by tests and tools can have
// mutants in it, and what is built otherwise never has.
//
// One build has all mutants. A function with mutants begins by looking at which one is on
// (seeded.On), and calls that copy:
//
//	func (t Timing) validity(resolution time.Duration) time.Duration { switch seeded.On("Timing.validity") { case "holder-margin": return t.validity__holder_margin(resolution) }; …
//
// Mutants come from two places. [Bugs] are seeded bugs, each the removal of one safety rule; where
// they are is described here, in package mutate, and nowhere in the code that they mutate.
// Campaigns make mutants of a package by rote: they negate conditions, move boundaries, drop
// statements, and so on.
//
//	go run ./internal/proof/mutate/cmd/seeded COMMAND…   runs a command of the go tool in which seeded bugs can be switched on
//	go run ./internal/proof/mutate/cmd/mutants           makes mutants by rote, and lists those that tests don't notice
package mutate
