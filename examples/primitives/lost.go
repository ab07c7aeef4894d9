package primitives

import (
	"errors"
	"fmt"
	"io"

	"github.com/leasehold/leasehold/lease"
)

// HandleLockLost tells what becomes of a lease, until it has ended.
func HandleLockLost(l *lease.Lease, out io.Writer) {
	for e := range l.Events() {
		switch e.State {
		case lease.StateHeld:
			fmt.Fprintln(out, "held: go on")
		case lease.StateJeopardy: // a renewal failed; there is time left
			fmt.Fprintln(out, "jeopardy: begin nothing that can't be undone")
		case lease.StateLost:
			var lost *lease.LostError
			errors.As(e.Err, &lost)
			fmt.Fprintf(out, "lost by %s: stop, and forget what was read under the lease\n", lost.Cause)
		case lease.StateReleased:
			fmt.Fprintln(out, "released")
		}
	}
}
