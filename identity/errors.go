package identity

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// The errors to branch on, with [errors.Is].
var (
	ErrExhausted = errors.New("pool is exhausted") // an *ExhaustedError
	// A *MismatchError, a *LayoutError, a *NarrowError.
	ErrMismatch    = errors.New("pool is declared otherwise")
	ErrAhead       = errors.New("no value can be used yet")             // an *AheadError
	ErrOutside     = errors.New("the pool has no such value")           // an *OutsideError
	ErrOtherValue  = errors.New("the instance has another value")       // an *OtherValueError
	ErrNotAssigned = errors.New("a process or a session has the value") // a *NotAssignedError
	ErrImport      = errors.New("not all can be adopted")               // an *ImportError
	ErrUndeclared  = errors.New("pool is not declared: say what its values are")
	ErrWindow      = errors.New("the value was granted to a later holder")
)

// ExhaustedError reports that every value of a pool is held. It matches [ErrExhausted].
type ExhaustedError struct {
	Pool    string
	Size    int      // values in the pool
	Held    int      // how many of them are held
	Holders []string // owner ids of some holders, 8 at most
	// Of the hold that expires first unless it is renewed, as far as it was observed.
	ExpiresIn time.Duration
}

func (e *ExhaustedError) Error() string {
	by := strings.Join(e.Holders, ", ")
	if e.Held > len(e.Holders) {
		by += " among others"
	}
	return fmt.Sprintf("%s: %v: %d of %d values are held, by %s; the first hold expires in %v unless it is renewed",
		e.Pool, ErrExhausted, e.Held, e.Size, by, e.ExpiresIn.Round(time.Millisecond))
}

// Is reports whether target is [ErrExhausted].
func (e *ExhaustedError) Is(target error) bool { return target == ErrExhausted }

// AheadError reports that the windows of a pool's free values begin too late for the claim. Clocks
// of earlier holders were ahead, or the clock here is behind. It matches [ErrAhead].
type AheadError struct {
	Pool  string
	Free  int           // how many values are free, as far as is known
	Value string        // the one whose window begins first
	Floor time.Time     // when that is
	In    time.Duration // how long that is from now, by the clock here
}

func (e *AheadError) Error() string {
	return fmt.Sprintf("%s: %v: of %d that are free, %s is the first, from %s on, in %v: see that the clock here is right, wait, widen the pool (leasehold id pool set), or reset them (leasehold id reset)",
		e.Pool, ErrAhead, e.Free, e.Value, e.Floor.UTC().Format(time.RFC3339), e.In.Round(time.Second))
}

// Is reports whether target is [ErrAhead].
func (e *AheadError) Is(target error) bool { return target == ErrAhead }

// MismatchError reports that a pool is used with other values than its own. The first claim sets
// them. It matches [ErrMismatch].
type MismatchError struct {
	Pool          string
	Stored, Asked Values
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s: its values are %s, not %s: all who use it have to name the same ones, or none; to add values, widen the pool (leasehold id pool set)", e.Pool, e.Stored, e.Asked)
}

// Is reports whether target is [ErrMismatch].
func (e *MismatchError) Is(target error) bool { return target == ErrMismatch }

// LayoutError reports that ids of a layout can't be made with the values of a pool. It matches
// [ErrMismatch].
type LayoutError struct {
	Pool   string
	Layout string // that was asked for
	Why    string
}

func (e *LayoutError) Error() string {
	return fmt.Sprintf("%s is no pool for ids of the layout %s: %s", e.Pool, e.Layout, e.Why)
}

// Is reports whether target is [ErrMismatch].
func (e *LayoutError) Is(target error) bool { return target == ErrMismatch }

// OutsideError reports that a value isn't one of a pool's.
type OutsideError struct {
	Pool, Value string
	Values      Values
}

func (e *OutsideError) Error() string {
	return fmt.Sprintf("%.60q is no value of %s, whose values are %s", e.Value, e.Pool, e.Values)
}

// Is reports whether target is [ErrOutside].
func (e *OutsideError) Is(target error) bool { return target == ErrOutside }

// OtherValueError reports that an instance has a value other than the requested one. It matches
// [ErrOtherValue].
type OtherValueError struct {
	Pool, Name, Value string // what it has
}

func (e *OtherValueError) Error() string {
	return fmt.Sprintf("%s has %s of %s: release that first", e.Name, e.Value, e.Pool)
}

// Is reports whether target is [ErrOtherValue].
func (e *OtherValueError) Is(target error) bool { return target == ErrOtherValue }
