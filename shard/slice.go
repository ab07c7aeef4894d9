package shard

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/shardmap"
	"github.com/leasehold/leasehold/lease"
)

// Slice is one term of owning a part of a space. It is safe for concurrent use.
type Slice struct {
	Space    string
	Name     string // of a slice of a space of names
	From, To uint64 // of a slice of a hashed space: the first and the last hash
	Token    fence.Token

	Previous string // address of the last owner while a slice is prepared, if it is known

	worker  *Owner
	s       *lease.Session
	over    *atomic.Bool // the session is about to end
	serving atomic.Bool  // Owner.Check passes
	owned   atomic.Bool  // Slice.Check passes
	ctx     context.Context
	cancel  context.CancelCauseFunc
	phase   phase // guarded by the keeper's lock
	meter   meter // of its load
}

// phase is how far a slice has come in its life. It only rises.
type phase uint8

const (
	starting phase = iota
	started
	draining
	ended
)

// ID returns the name of the slice, or its range as two hexadecimal numbers.
func (s *Slice) ID() string { return (shardmap.Slice{Name: s.Name, From: s.From, To: s.To}).ID() }

// String returns the space, the slice and the token, for logs.
func (s *Slice) String() string { return fmt.Sprintf("%s %s (token %d)", s.Space, s.ID(), s.Token) }

// Check returns nil while this worker owns the slice under this token, from before Start until
// before Stop; else an error that matches [ErrWrongOwner], or the session's *[lease.LostError].
// Check looks at the clock at each call, does no I/O and allocates nothing while it passes.
func (s *Slice) Check() error {
	if !s.owned.Load() || s.over.Load() {
		return errUnknownOwner
	}
	return s.s.Check()
}

// ValidUntil returns the instant of the manager's clock at which the validity of the slice ends
// unless its session is renewed, or [clock.Ended] when it has ended.
func (s *Slice) ValidUntil() clock.Instant {
	if !s.owned.Load() || s.over.Load() {
		return clock.Ended
	}
	return s.s.ValidUntil()
}

// Sequencer returns what a request to a guarded resource carries: SPACE/SLICE, the worker's owner
// id, and the token. In a hashed space a guard keeps its mark per row, not per slice: slices split
// and merge, and the token of each rises above all that any of its keys has had.
func (s *Slice) Sequencer() fence.Sequencer {
	return fence.Sequencer{Name: s.Space + "/" + s.ID(), Holder: s.worker.m.Holder(), Token: s.Token}
}

// Context returns the context of the term, as Start got it.
func (s *Slice) Context() context.Context { return s.ctx }
