// Package admiral is active/passive disaster recovery with the configuration, table rows, states
// and health endpoint of Admiral. Of several instances of a controller, in several Regions, one
// writes and the others stand by.
//
// It is Admiral's state checker, built on package lease:
//
//   - Every write is conditional.
//   - An instance is active only after it knows that its own write landed.
//   - An instance that can't renew in time turns read-only, by its own clock.
//   - When the store doesn't answer, the instance is read-only, and gives the reason.
//
// # State
//
// A program reads, watches and gates its writes on a [State]:
//
//	          a lease is held, and the warm-up is over
//	Passive ──────────────────────────────────────────▶ Active
//	   ▲                                                   │
//	   └───────────────────────────────────────────────────┘
//	     its validity ends, it is taken, held back by an operator, handed over, released
//
// It begins read-only and not initialised. [State.Guard] returns the term under which a write may
// be sent, or an error that matches [ErrReadOnly]. At its end, a term is over before anything else
// happens, and so is the context of every write that was bound to it. [RoundTripper] does that for
// each request of an HTTP client that changes something.
//
// # The trust rule
//
// An instance is active until TTL·(1−δ) after it sent its last renewal, on a clock that nobody can
// set. TTL is waitTimeInSeconds × failureThreshold. Another instance takes over when it has seen
// the row unchanged for the whole TTL. So two instances are never active at once while clock rates
// are within the bound of package lease.
//
// A process may still be stopped between Guard and the write. What must not be done twice has to
// check the token of the term (package fence).
//
// # An operator's hold
//
// A row whose owner is [SkipOwner] keeps every instance passive and doesn't expire. [Operator.Hold]
// writes it and [Operator.Resume] removes it. The active instance meets the row at its next
// renewal. Resume leaves it the time for that.
//
// # Warm-up
//
// For the time of [Options].WarmUp after its start an instance is not active, because its picture
// of the world is not complete. If it holds the lease meanwhile, it renews the lease. It takes a
// lease that another instance held only when the rest of the warm-up is shorter than the TTL. So it
// doesn't take the lease from an instance that is warm.
package admiral
