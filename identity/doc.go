// Package identity gives each process a value of its own out of a pool: a machine number, a name, a network. A claim is a lease
// with a fencing token, kept by the one heartbeat of a [lease.Session]; and it carries a window of time, so that ids made of the
// value and the time are unique even where the lease alone couldn't promise it.
//
//	h, err := identity.Claim(ctx, session, "machines", identity.Options{Values: identity.Values{Range: "0-1023"}, Name: host})
//	g, err := flake.New[flake.ID](flake.Snowflake(), h.Number(), h, flake.Options{})
//	…
//	err = h.Release(ctx, g.Stop())
//
// # How it is kept
//
// Each value is a lease, "identity/POOL/VALUE", and beside it a record of its windows. The pool has one record: what its values
// are, and an index of those that are probably free. The index is a hint. Which value is whose, the leases alone say.
//
//	           ┌ a name, and it had a value ──► that one
//	pool read ─┤                                                            ┌─ taken meanwhile ──► another candidate
//	           └ else: never used ones, drawn at random; then the released ─┴─ lease ──► window stored ──► held
//	             ones, the one that was released first before the others
//
// A claim costs two writes, that of the lease and that of its window, and a third one when a name gets another value. Who met
// several candidates that were taken writes that into the index, and a release adds its value at the end. Candidates are tried up to
// a fixed number: fewer, and in no order, where many are about; and who loses a race for one steps back, for longer each time.
// Only when none of them is free are all values listed; what that shows goes into the index, too, and if
// nothing is free it serves everybody for a third of a TTL. Values of dead holders are found then: each session is
// looked at, and closed before a value of it is taken, which is the lease's rule.
//
// # Windows
//
// A holder may stamp times from its floor up to its ceiling. The ceiling is stored before it counts, and the next holder's
// floor is what is stored. Each change is one compare-and-swap of the value's record, and is made only under the highest token
// that the record has seen, so the windows of one value never overlap: also not when a holder was paused for days, when two of
// them believe in their leases, or when clocks are wrong.
//
//	floor = stored ceiling            ceiling, raised in time while it is held        released: stored ceiling = last time used
//	──────┼──────────────────────────────────┼───────────────────────────────────────────────► time in the ids
//
// A holder that dies leaves its ceiling, which is up to [Options.Window] ahead of its clock. Who gets the value next can make
// ids from there on, so it may have to wait for that long: the TTL, by default.
//
// The times between are those of [Hold.Now], which is the wall clock except after somebody has set that.
//
// # Assignments
//
// [Assign] gives a value to a name without a process that keeps it: a lease without a session, whose TTL is long, and which Assign
// renews in place. It is taken by a manager with an ordinary TTL, handed over, given its window, and has its long TTL with the last
// write, so that a death in between takes nothing out of the pool for long.
//
// # Limits
//
// The records of a pool must not be deleted while ids of it matter: its marks would be forgotten. On a store that doesn't vouch
// for the age of records, a dead holder's value is free when one process has looked at it twice, a TTL apart. The index is one record:
// when very many claim and release used values at one instant, some lose a race and write once more, and some releases leave the index as it is.
package identity
