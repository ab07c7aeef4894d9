package shard

import "github.com/leasehold/leasehold/internal/shardmap"

// State is what a [Strategy] decides on.
type State struct {
	Slices    []SliceState // in the order of the map
	Workers   []WorkerState
	Placement Placement

	// Measured says that the loads are what workers have reported ([Owner.Report]). Else each is 1.
	Measured bool
	// Grain says how much of a load is chance: one of x was measured as x ± √(x·Grain), a standard
	// deviation. It is the mean size of a report, over the time that loads are smoothed for.
	Grain float64
	// Floor and Ceiling bound the number of slices of a hashed space: merges go down to Floor,
	// which is the number at first, and splits up to Ceiling, twice that. Both are 0 in a space of
	// names.
	Floor, Ceiling int
}

// SliceState is a slice, as a strategy sees it.
type SliceState struct {
	ID       string
	From, To uint64   // of a hashed space: the first and the last hash
	Chunk    int      // index of its record: slices of two records don't merge
	Owner    int      // index of its worker; -1 when nobody owns it
	Next     int      // index of the worker that it is to go to; -1 when it is to stay
	Load     float64  // 1 where nothing is known; else what was reported a second
	Hot      []HotKey // busy keys of a hashed space that are known, in no order
	Busy     bool     // it is asked to split or to merge
	Deaths   int      // how many of its last owners ended soon after it had come to them, in a row
}

// HotKey is a key that causes much of the load of its slice.
type HotKey = shardmap.Hot

// WorkerState is a worker that lives, as a strategy sees it.
type WorkerState struct {
	Name, Address, Zone string
	Labels              map[string]string
	Capacity            float64
	Goes                bool // it is to own nothing
}

// Move says that a slice is to go to a worker. One that nobody owns goes at once; the owner of
// another one first drains it.
type Move struct {
	Slice, To int // indexes in the State; To is -1 for a move that is withdrawn

	// Split, if it isn't 0, asks the owner to split the slice there instead: it is the first hash
	// of the upper part. Merge asks it to merge the slice with the one after it, which first moves
	// to the same owner. To is of no meaning then.
	Split uint64
	Merge bool
}

// Strategy decides who is to own what. A strategy decides nothing that is needed for safety: any
// answer is safe.
type Strategy interface {
	// Plan returns the moves that are wanted now. It must not keep the state.
	Plan(s *State) []Move
}

// Balance is the default strategy. It gives slices that nobody owns to the workers with the largest
// lack, and empties workers that go. Then it moves slices from workers that have too much to those
// that have too little. Where loads are reported, it balances by load, moves first what brings the
// most for the keys that it moves, and splits slices that are too large to move. A hot key gets a
// slice of its own; cold neighbours merge. Where no loads are reported, it counts slices, and gives
// a worker slices side by side.
type Balance struct {
	// Tolerance is by how much of its fair share a worker may have too much, or too little, before
	// slices move: 0.1 by default. Within it nothing moves. It is at least what chance may do to
	// the load of a worker, which is much when little is reported: four standard deviations
	// ([State.Grain]). If loads aren't reported, it is at least one slice.
	Tolerance float64

	// Churn is the share of all slices that may be under way for balance at a time: 0.05 by
	// default, and at least 8.
	Churn float64

	// MaxLoad is the load that a worker of capacity 1 bears. As long as the fair shares are less,
	// the tolerance is that share of MaxLoad: a space with little to do needs no balance. 0 is
	// none.
	MaxLoad float64
}
