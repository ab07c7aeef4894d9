package lock

import (
	"errors"
	"fmt"
	"strings"

	"github.com/leasehold/leasehold/lease"
)

// ErrMismatch is matched, by [errors.Is], by a *[MismatchError]. The other errors are those of
// packages lease and store. A lock that others hold is a *[HeldError], which matches
// [lease.ErrHeld]. A name in use as another kind is a *[store.KindError].
var ErrMismatch = errors.New("semaphore has another limit")

// HeldError names the holders of a lock that was wanted. It matches [lease.ErrHeld].
type HeldError struct {
	Name    string
	Wanted  int      // the weight
	Free    int      // what is left of the limit
	Holders []string // owner ids
	Waiting int      // the number of waiters before
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

// Is reports whether target is [lease.ErrHeld].
func (e *HeldError) Is(target error) bool { return target == lease.ErrHeld }

// MismatchError says that a semaphore is used with another limit than its own. The first use of a
// name sets the limit. It matches [ErrMismatch].
type MismatchError struct {
	Name          string
	Stored, Asked int
	Held          int // of the stored limit, where that is why it stays as it is
}

func (e *MismatchError) Error() string {
	if e.Held > e.Asked {
		return fmt.Sprintf("%s: its limit is %d, of which %d are held, not %d", e.Name, e.Stored, e.Held, e.Asked)
	}
	return fmt.Sprintf("%s: its limit is %d, not %d: all who use it have to name the same one, unless SetLimit has set it", e.Name, e.Stored, e.Asked)
}

// Is reports whether target is [ErrMismatch].
func (e *MismatchError) Is(target error) bool { return target == ErrMismatch }
