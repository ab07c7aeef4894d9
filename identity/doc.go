// Package identity gives each process a value of its own out of a pool: a machine number, a name, a
// network.
//
// A claim is a lease with a fencing token. The one heartbeat of a [lease.Session] renews all claims
// of a process. A claim also has a window of time. Ids made of the value and the time are unique by
// that window, even where the lease alone can't guarantee it.
//
//	h, err := identity.Claim(ctx, session, "machines", identity.Options{Values: identity.Values{Range: "0-1023"}, Name: host})
//	g, err := flake.New[flake.ID](flake.Snowflake(), h.Number(), h, flake.Options{})
//	…
//	err = h.Release(ctx, g.Stop())
//
// # How it works
//
// Each value is a lease, "identity/POOL/VALUE", with a record of its windows beside it. The pool
// has one record: its values, and an index of those that are probably free. The index is a hint.
// The leases alone say who holds which value.
//
//	           ┌ a name, and it had a value ──► that one
//	pool read ─┤                                                            ┌─ taken meanwhile ──► another candidate
//	           └ else: never used ones, drawn at random; then the released ─┴─ lease ──► window stored ──► held
//	             ones, the one that was released first before the others
//
// A claim costs two writes: the lease and its window. A third write, of the name's record, comes
// when a name gets another value. A claim that met several taken candidates also writes that into
// the index. A release adds its value at the end of the index.
//
// [Assign] gives a value to a name without a process that renews it.
//
// # Windows
//
// A holder may use times from its floor up to its ceiling. The ceiling is stored before it counts,
// and the next holder's floor is the stored ceiling. Each change is one compare-and-swap of the
// value's record, under the highest token that the record has seen. So the windows of one value
// never overlap. That holds when a holder was paused for days, when two holders both believe in
// their leases, and when clocks are wrong.
//
//	floor = stored ceiling            ceiling, raised in time while it is held        released: stored ceiling = last time used
//	──────┼──────────────────────────────────┼───────────────────────────────────────────────► time in the ids
//
// A holder that dies leaves its ceiling, which is up to [Options.Window] ahead of its clock. The
// next holder can make ids from that ceiling on, so it may have to wait that long: the TTL, by
// default.
//
// The times in a window are those of [Hold.Now]. That is the wall clock, except after somebody has
// set it.
//
// # Limits
//
//   - The records of a pool must not be deleted while its ids matter: the stored ceilings would be
//     lost.
//   - On a store that doesn't vouch for the age of records, a dead holder's value is free when one
//     process has looked at it twice, a TTL apart.
//   - The index is one record. When very many processes claim and release used values at one
//     instant, some lose a race and write once more, and some releases leave the index as it is.
package identity
