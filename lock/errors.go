package lock

import (
	"errors"
	"fmt"
	"strings"
)

// The errors to branch on, with [errors.Is].
var (
	ErrHeld     = errors.New("lock is held")               // a *HeldError
	ErrMismatch = errors.New("lock is declared otherwise") // a *MismatchError
	ErrFull     = errors.New("lock has no room for another holder or waiter")
)

// HeldError says who holds what was wanted. It matches [ErrHeld].
type HeldError struct {
	Name    string
	Wanted  int      // the weight
	Free    int      // what is left of the limit
	Holders []string // owner ids
	Waiting int      // who waits before
}

func (e *HeldError) Error() string {
	who := strings.Join(e.Holders, ", ")
	if len(e.Holders) > 3 {
		who = fmt.Sprintf("%s and %d others", strings.Join(e.Holders[:3], ", "), len(e.Holders)-3)
	}
	if who == "" {
		who = "nobody"
	}
	return fmt.Sprintf("%s: %d wanted, %d free: held by %s, %d waiting before", e.Name, e.Wanted, e.Free, who, e.Waiting)
}

// Is reports whether target is [ErrHeld].
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// MismatchError says that a lock is used as what it isn't. The first use of a name says what it is. It matches
// [ErrMismatch].
type MismatchError struct {
	Name          string
	Field         string // "kind" or "limit"
	Stored, Asked string
}

func (e *MismatchError) Error() string {
	msg := fmt.Sprintf("%s: its %s is %s, not %s", e.Name, e.Field, e.Stored, e.Asked)
	if e.Field == "limit" {
		msg += ": all who use it have to name the same one; SetLimit changes it"
	}
	return msg
}

// Is reports whether target is [ErrMismatch].
func (e *MismatchError) Is(target error) bool { return target == ErrMismatch }
