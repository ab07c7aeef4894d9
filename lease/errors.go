package lease

import (
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/protocol"
)

// The errors to branch on, with [errors.Is].
var (
	ErrHeld   = errors.New("lease is held") // a *HeldError
	ErrLost   = errors.New("lease is lost") // a *LostError
	ErrClosed = errors.New("lease manager is closed")
)

// HeldError is the error for a wanted name that another holder has. It matches [ErrHeld].
type HeldError struct {
	Name      string
	Holder    string
	Since     time.Time // when the term began, by the holder's wall clock; human-readable
	Token     fence.Token
	ExpiresIn time.Duration // if the holder doesn't renew, as this process has observed it
	Note      string        // who broke the hold or handed it over, and why; else empty

	// Err is what a primitive made of leases adds. An example is a *lock.HeldError, where several
	// holders are in the way.
	Err error
}

// Unwrap returns Err.
func (e *HeldError) Unwrap() error { return e.Err }

func (e *HeldError) Error() string {
	return fmt.Sprintf("%s is held by %s since %s (token %d)", e.Name, e.Holder, e.Since.Format(time.RFC3339), e.Token)
}

// Is reports whether target is [ErrHeld].
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// Cause is why a lease ended.
type Cause string

// The causes.
const (
	// CauseExpired means that validity ran out although the store answered: this process was
	// paused, or cut off.
	CauseExpired  Cause = "expired"
	CauseTaken    Cause = "taken"        // another holder has the name, or its record is gone
	CauseBroken   Cause = "broken"       // an operator broke the hold
	CauseOutage   Cause = "store outage" // validity ran out while the store did not answer
	CauseReleased Cause = "released"     // the holder released the lease, or handed it over
	CauseClosed   Cause = "closed"       // its manager was closed while it was held
)

// LostError is the error of a lease that ended. It matches [ErrLost] unless the holder itself
// released the lease.
type LostError struct {
	Name  string
	Token fence.Token
	Cause Cause
	Err   error // what the store said last, if that is the reason
}

func (e *LostError) Error() string {
	msg := fmt.Sprintf("lease %s (token %d) is lost: %s", e.Name, e.Token, e.Cause)
	if e.Cause == CauseReleased {
		msg = fmt.Sprintf("lease %s (token %d) was released", e.Name, e.Token)
	}
	if e.Err != nil {
		msg += ": " + e.Err.Error()
	}
	return msg
}

// Is reports whether target is [ErrLost].
func (e *LostError) Is(target error) bool { return target == ErrLost && e.Cause != CauseReleased }

// Unwrap returns Err: what the store said last.
func (e *LostError) Unwrap() error { return e.Err }

func causeOf(c protocol.Cause) Cause {
	switch c {
	case protocol.CauseTaken:
		return CauseTaken
	case protocol.CauseBroken:
		return CauseBroken
	case protocol.CauseOutage:
		return CauseOutage
	default:
		return CauseExpired
	}
}
