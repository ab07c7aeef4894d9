package admiral

import "errors"

// The errors to branch on, with [errors.Is].
var (
	// ErrReadOnly is what every *[ReadOnlyError] matches.
	ErrReadOnly = errors.New("this instance is read-only")

	ErrNotHeld = errors.New("no operator holds the instances passive")
	ErrNobody  = errors.New("nobody is active")
	ErrForeign = errors.New("the active instance is one of Admiral itself, which takes no orders")
	// ErrNoTTL: the hold was written by hand, and Config doesn't say for how long the term before
	// it may last.
	ErrNoTTL = errors.New("it is not known for how long the instance that was active before the hold may stay so")

	ErrChanged = errors.New("the addresses were changed by another instance")
	ErrFull    = errors.New("there is no address left")
)
