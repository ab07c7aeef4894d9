package shard

import (
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
)

// The errors to branch on, with [errors.Is].
var (
	// ErrWrongOwner is the error of a check of a key that this worker may not act on. The error
	// itself is a *[WrongOwner].
	ErrWrongOwner = errors.New("another worker owns the key, or nobody does")
	// ErrMismatch is the error for a space that was made as another kind: of names, or hashed.
	ErrMismatch = errors.New("the space is of the other kind")
	// ErrNoSlice is the error for a name that isn't in the space.
	ErrNoSlice = errors.New("no such slice")
	// ErrNoWorker is the error for a worker that isn't a member of the space.
	ErrNoWorker = errors.New("no such worker")
	// ErrManyWorkers is the error for a name or an address that several workers have.
	ErrManyWorkers = errors.New("several workers have it")
	// ErrQuarantined is the error that [Worker.OnError] of the assigner is called with for a slice
	// whose owners ended one after the other. See [Entry.Quarantined].
	ErrQuarantined = errors.New("slice is quarantined")
)

// Why the context of a slice ended: its cause, for [errors.Is].
var (
	ErrMoved    = errors.New("the slice was drained: it goes to another worker, or is split, merged or removed")
	ErrExpiring = errors.New("the session of the worker is about to end")
	ErrLeft     = errors.New("the worker has left")
	// Only an outsider's write does that.
	ErrTaken = errors.New("the record of the slice names another owner")
)

// WrongOwner says that a worker may not act on a key, and who may, as far as the worker knows. It
// matches [ErrWrongOwner].
type WrongOwner struct { //nolint:errname // callers read shard.WrongOwner{Now: …}
	Now     string      // address of the owner; "" where it isn't known, or nobody owns the key
	Session string      // of the owner; "" where it isn't known
	Token   fence.Token // of the owner; 0 where it isn't known
}

func (e *WrongOwner) Error() string {
	if e.Now == "" {
		return ErrWrongOwner.Error()
	}
	return fmt.Sprintf("%s owns the key (token %d): retry there once", e.Now, e.Token)
}

// Is reports whether target is [ErrWrongOwner].
func (e *WrongOwner) Is(target error) bool { return target == ErrWrongOwner }

// errUnknownOwner is the error where nothing is known, so that a check allocates nothing.
var errUnknownOwner = &WrongOwner{}

// wall returns the time of day, for tokens that are made without a manager.
func wall() time.Time { return clock.System().Wall() }
