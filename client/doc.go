// Package client speaks to a lock server.
//
// [Open] returns the server's store as a [store.Store]. Leases, sessions, elections and locks work
// over it as over any store. The lease protocol then runs in this process, and the server only
// keeps the records:
//
//	st, err := client.Open(ctx, "https://locks.example.com", client.Options{Token: token})
//	m, err := lease.NewManager(st, lease.Options{})
//
// Use it to hold something for long: package lease renews, reports the end of the validity, and
// recovers.
//
// [New] returns a client that makes the server's calls one by one. It is for programs that look,
// operate, or hold a name for one piece of work. The server then keeps the queue and names the
// holder in its answer:
//
//	c, err := client.New("https://locks.example.com", client.Options{Token: token})
//	g, err := c.Acquire(ctx, "nightly", client.AcquireOptions{TTL: time.Minute, Wait: 5 * time.Minute})
//	defer c.Release(ctx, g)
//	… with g.Sequencer in every request to what the name guards, and no longer than g.Left() says
//
// Only [Client.Renew] renews a [Grant]. For work that may last longer than the TTL, use a lease of
// [Open]'s store.
//
// # Properties as a store
//
// Consistency, fencing and the age of records are those of the store behind the server.
//
//	compare-and-swap   one request, a PUT with the version that it replaces
//	push               yes, by requests that are answered when the record has changed
//	requests           one for each operation
//	permissions        the action "records" of the server's policy, on the prefix that is used
//
// A request that may have reached the server, and that the server didn't answer, has an unknown
// outcome. A request for which no connection could be made was not done. An answer of a proxy in
// between says nothing about a write.
package client
