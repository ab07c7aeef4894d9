// Package lease holds names in a store: it acquires, renews, watches over, hands over and releases them.
//
// A lease is for liveness, its token is for safety. While a [Lease] is valid, no other process that keeps to the rules
// holds the name, provided that clock rates are within the bound that [Options] states. A process can still be paused
// between its last look at the lease and what it does next; so the guarded resource has to see the token, which rises with
// every change of ownership, and refuse an older one (package fence).
//
// # What a holder may rely on
//
//   - Validity counts from before the request that made or renewed the hold was sent, on a clock that counts suspension,
//     and is shorter than the TTL by a margin: Sent + TTL·(1−δ).
//   - [Lease.Check] compares at each call. It costs nanoseconds and allocates nothing, so call it before every step that
//     must not be done twice.
//   - [Lease.Context] is cancelled when the hold ends for whatever reason, before anything else is done about it.
//   - [Lease.Events] tells in order: held, jeopardy (a renewal failed, the hold is still valid), held again, and at last
//     lost or released, once.
//   - After a loss the Lease is spent. A new Acquire works, and gets a new token.
//
// Work has to have stopped before a lease is released or handed over: [Manager.Run] sees to that.
//
// # Sessions
//
// A [Session] keeps any number of leases alive with one heartbeat: one write every TTL/3 for all of them. They are valid
// while the session is.
//
// # Unknown outcomes
//
// When the store can't tell whether a write happened, the record is read and the write recognised by its nonce; a lease
// that may have been taken, but that nobody holds any more, is freed in the background or left to expire. See
// internal/rules for the protocol itself.
package lease
