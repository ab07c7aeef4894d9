package api

import (
	"time"

	"github.com/leasehold/leasehold/fence"
)

// What only the command says.

// Change is a line of "leasehold watch": a name that has changed, as a lease with the time.
type Change struct {
	Time time.Time `json:"time"` // when the change was noticed
	Lease
}

// LeaderState is a line of "leasehold observe": who leads.
type LeaderState struct {
	Time time.Time `json:"time"` // when it was noticed
	Name string    `json:"name"` // the name of the election
	// The id under which the leader holds the name; absent when nobody leads.
	Leader string `json:"leader,omitempty"`
	// The fencing token of the term, or of the last one.
	Token fence.Token `json:"token"`
	// When the term began, by the leader's wall clock.
	Acquired *time.Time `json:"acquired,omitempty"`
	// How long ago the store said so; absent when it never has.
	Age    *Seconds `json:"age,omitempty"`
	Paused *Pause   `json:"paused,omitempty"` // why nobody leads
	// True while the store can't be read: this is what was known last.
	Stale bool   `json:"stale,omitempty"`
	Error string `json:"error,omitempty"` // why the store can't be read
}

// SweepFinding is a line of "leasehold sweep": what became of a record.
type SweepFinding struct {
	// The key of the record: a name, or one of Leasehold's own.
	Key    string `json:"key"`
	Action string `json:"action"`            // deleted, freed, closed, pruned or kept
	Reason string `json:"reason"`            // why
	DryRun bool   `json:"dry_run,omitempty"` // true if nothing was changed
}

// FreedValue is a line of "leasehold id prune": a value that was freed.
type FreedValue struct {
	Value string `json:"value"` // the value
	As    string `json:"as"`    // the name that had it
}

// SharedValue is a line of "leasehold id duplicates": a value that several have.
type SharedValue struct {
	Value string   `json:"value"` // the value
	Names []string `json:"names"` // the names that have it
}
