package store

import (
	"errors"
	"fmt"
)

// The errors to branch on, with [errors.Is].
var (
	ErrNotFound       = errors.New("record not found")
	ErrConflict       = errors.New("record was changed by another write")
	ErrInvalid        = errors.New("invalid record")
	ErrUnknownOutcome = errors.New("outcome unknown: the write may have happened")
	ErrCorrupt        = errors.New("record can't be read")
	ErrClosed         = errors.New("store is closed")
)

// ConflictError is the error of a write that was not done because the record had another version.
// It matches [ErrConflict].
type ConflictError struct {
	Current Record // what was there instead
}

func (e *ConflictError) Error() string {
	if e.Current.Owner == "" {
		return fmt.Sprintf("%s: %v (nobody holds it, token %d)", e.Current.Key, ErrConflict, e.Current.Token)
	}
	return fmt.Sprintf("%s: %v (held by %s, token %d)", e.Current.Key, ErrConflict, e.Current.Owner, e.Current.Token)
}

// Is reports whether target is [ErrConflict].
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// InvalidError says which part of a record no store would take, and what it should be. It matches
// [ErrInvalid]. Nothing was written.
type InvalidError struct {
	Field string // the field's name in Record: "Key", "TTL"
	Value string // as given, shortened where it is long
	Want  string // what it should be
}

func (e *InvalidError) Error() string {
	return fmt.Sprintf("invalid record: %s %s: want %s", e.Field, e.Value, e.Want)
}

// Is reports whether target is [ErrInvalid].
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

// CorruptError says which row can't be read, and why. It matches [ErrCorrupt] and its cause.
type CorruptError struct {
	Key string // as far as the engine can tell
	Err error
}

func (e *CorruptError) Error() string { return fmt.Sprintf("%s: %v: %v", e.Key, ErrCorrupt, e.Err) }

// Unwrap returns what the error matches: [ErrCorrupt] and the cause.
func (e *CorruptError) Unwrap() []error { return []error{ErrCorrupt, e.Err} }
