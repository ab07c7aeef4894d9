package identity

import (
	"errors"
	"fmt"
	"testing"
)

// Every error with a type of its own can be told by errors.Is, too, and from the others.
func TestErrorsMatch(t *testing.T) {
	sentinels := []error{ErrExhausted, ErrMismatch, ErrAhead, ErrOutside, ErrOtherValue, ErrNotAssigned, ErrImport}
	for err, want := range map[error]error{
		&ExhaustedError{}: ErrExhausted, &MismatchError{}: ErrMismatch, &LayoutError{}: ErrMismatch, &NarrowError{}: ErrMismatch, &AheadError{}: ErrAhead,
		&OutsideError{}: ErrOutside, &OtherValueError{}: ErrOtherValue, &NotAssignedError{}: ErrNotAssigned, &ImportError{}: ErrImport,
	} {
		for _, s := range sentinels {
			if got := errors.Is(fmt.Errorf("call: %w", err), s); got != (s == want) {
				t.Errorf("%T is %q: %t", err, s, got)
			}
		}
	}
}
