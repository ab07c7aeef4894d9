// Package lease holds names in a store. It acquires, renews, watches, hands over and releases them.
//
// A lease is for liveness, its token is for safety. While a [Lease] is valid, no other process that
// keeps to the rules holds the name. This requires that clock rates stay within the bound that
// [Options] states. A process can still be paused between its last look at the lease and its next
// step. So the guarded resource has to see the token, which rises with every change of ownership,
// and refuse a stale one (package fence).
//
// # What a holder may rely on
//
//   - Validity counts from before the holder sent the request that made or renewed the hold. It
//     counts on a clock that counts suspension, and is shorter than the TTL by a margin: Sent +
//     TTL·(1−δ).
//   - [Lease.Check] compares at each call. It costs nanoseconds and allocates nothing, so call it
//     before every step that must not be done twice.
//   - [Lease.Context] is cancelled when the hold ends, whatever the reason, before anything else is
//     done about the end.
//   - [Lease.Events] sends in order: held, jeopardy (a renewal failed, the hold is still valid),
//     held again, and at last lost or released, once.
//   - After a loss the Lease is spent. A new Acquire works, and gets a new token.
//
// Work has to have stopped before a lease is released or handed over. [Manager.Run] sees to that.
//
// # Paused machines
//
// A process may be stopped (SIGSTOP, a garbage collection), or its machine may sleep. Such a
// process finds its lease over at the first Check.
//
// A virtual machine that its host paused, or that was restored from a snapshot, does not find that.
// None of its clocks has counted that time. So Check passes until the next renewal has met the
// version of the holder that took the name. That renewal is at most TTL/3 of the guest's own time
// away.
//
// The renewal comes at once, within TTL/12, when the wall clock is found to have jumped ahead by
// more than TTL/10. A time daemon or the host's agent sets the wall clock so after a pause. A wall
// clock that is set for another reason costs a renewal and ends nothing. So a lease alone is no
// protection on machines that are paused: the guarded resource has to see the token.
//
// # Sessions
//
// A [Session] keeps any number of leases alive with one heartbeat: one write every TTL/3 for all of
// them. The leases are valid while the session is.
//
// An outsider may delete, edit or restore the record of such a lease. So a session looks at the
// records of its leases every TTL/4, and ends the term of a lease whose record doesn't name the
// term any more. [Session] says how soon it notices, what the looks cost, and what to mind with
// very many leases.
//
// # Unknown outcomes
//
// When the store can't tell whether a write happened, the outcome is unknown. The manager then
// reads the record and recognises its write by the nonce. A lease that may have been taken, but
// that nobody holds any more, is freed in the background or left to expire. See internal/protocol
// for the protocol itself.
package lease
