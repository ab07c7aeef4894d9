// Package admiral is active/passive disaster recovery with the configuration, table rows, states and health endpoint of
// Admiral: of several instances of a controller, in several Regions, one writes and the others stand by.
//
// It is the state checker of Admiral, built on package lease: every write is conditional, an instance is active only after
// its own write is known to have landed, it turns read-only by its own clock when it can't renew in time, and a store that
// does not answer means read-only, with the reason.
//
// # State
//
// [State] is what the rest of a program reads, watches and gates on:
//
//	          a lease is held, and the warm-up is over
//	Passive ──────────────────────────────────────────▶ Active
//	   ▲                                                   │
//	   └───────────────────────────────────────────────────┘
//	     its validity ends, it is taken, held back by an operator, handed over, released
//
// It begins read-only and not initialised. [State.Guard] gives the term under which a write may go out, or an error that
// matches [ErrReadOnly]. A term ends before anything else is done about its end, and with it the context of every write that
// was bound to it. [RoundTripper] does that for each request of an HTTP client that changes something.
//
// # The trust rule
//
// An instance is active until TTL·(1−δ) after it sent its last renewal, on a clock that no one sets; TTL is waitTimeInSeconds
// × failureThreshold. Another one takes over when it has seen the row unchanged for the whole TTL. So two are never active at
// once while clock rates are within the bound of package lease. What must not be done twice all the same, after a process was
// stopped between Guard and the write, has to check the token of the term (package fence).
//
// # An operator's hold
//
// A row whose owner is [SkipOwner] holds everyone passive and does not expire. [Hold] writes it and [Resume] takes it off.
// Whoever was active meets it at its next renewal; Resume leaves it time to: see there.
//
// # Warm-up
//
// For the time of [Options].WarmUp after its start an instance is not active: its picture of the world is not complete.
// If it holds the lease meanwhile, it renews it. It takes a lease that another has held only when the rest of the warm-up is
// shorter than the TTL, so that it doesn't snatch it from an instance that is warm.
//
// # Identity
//
// The holder's id is podIdentifier/host/pid/random. Two pods that were given the same podIdentifier are two holders, and at
// most one of them is active.
package admiral
