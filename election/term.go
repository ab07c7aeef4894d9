package election

import (
	"context"
	"time"
)

// Left returns for how long the term is still valid without a renewal; 0 when it has ended. See
// [lease.Lease.Left].
func (t Term) Left() time.Duration { return t.lease.Left() }

// Context returns a context that is cancelled when the term ends, with the [lease.LostError] as its
// cause. The context of OnStartedLeading ends before.
func (t Term) Context() context.Context { return t.lease.Context() }
