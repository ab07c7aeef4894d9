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
// An outsider may delete, edit or restore the record of such a lease: with kubectl or etcdctl, or
// as another program that shares the record. So a session looks at the records of its leases every
// TTL/4. It ends the term of a lease whose record doesn't name the term any more ([CauseTaken],
// with what the record says). The term ends TTL/3 later at the latest, as long as the store answers
// within TTL/12. If the store takes longer, that time comes on top.
//
// Where the store pushes changes, the session follows 8 of its leases that are older than TTL/20.
// It looks as soon as it hears of a change. A label, or a change of the record's data, ends
// nothing.
//
// A lease that keeps itself meets the change with its next renewal, as soon. Any other version of
// its record ends that lease, even a copy that was written back. Labels and annotations on a
// Kubernetes object don't end it. What looking costs:
//
//	leases     requests every TTL/4             at a TTL of 15 s
//	1          1 read                           0.27 reads a second
//	16         16 reads                         4.3 reads a second
//	100        1 List of what names begin with  0.27 Lists a second, of 25 KB
//	100,000    1 List                           0.27 Lists a second, of 25 MB: 1 to 2.4 s of a core and of the store
//
// Other programs may share the records ([driver.Toucher]: on Kubernetes, client-go). There the look
// at the first 16 leases is a write, which renews the record for those programs. Like a renewal,
// this write is sent again when it has had no answer for TTL/20. It extends the lease from before
// the first copy was sent.
//
// Each of the 8 leases that are followed has a goroutine, and costs what a Wait of the store costs.
// On etcd and Kubernetes a Wait is a watch. On PostgreSQL, Redis and NATS it is a place in the one
// connection that listens. Most Waits are free while nothing changes. On Consul the session follows
// no lease. There, a query that is given up keeps its connection for a minute. A client may have
// 200 connections.
//
// A List also reads names that are not the session's, and the session tells them apart by their
// names alone. So give the names of one session a prefix in common. No other lease costs a
// goroutine. For very many leases take a longer TTL: the number of requests falls in proportion.
//
// On DynamoDB a List is a Scan of the whole table, one read unit for each 4 KiB of it. That is 67
// units a look at 1,000 leases, 18 a second at a TTL of 15 s. What leasehold cost estimates doesn't
// contain the looks.
//
// # Unknown outcomes
//
// When the store can't tell whether a write happened, the outcome is unknown. The manager then
// reads the record and recognises its write by the nonce. A lease that may have been taken, but
// that nobody holds any more, is freed in the background or left to expire. See internal/protocol
// for the protocol itself.
package lease
