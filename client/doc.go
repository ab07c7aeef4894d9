// Package client speaks to a lock server.
//
// [Open] returns the server's store as a [store.Store]. Everything that works on a store works over it: leases, sessions,
// elections, locks. The lease protocol then runs in this process, and the server only keeps the records:
//
//	st, err := client.Open(ctx, "https://locks.example.com", client.Options{Token: token})
//	m, err := lease.NewManager(st, lease.Options{})
//
// That is the way to hold something for long: package lease renews, says when the validity is over, and recovers.
//
// [New] returns a client that makes the server's calls one by one, for programs that look, operate, or hold a name for one piece of
// work. The server then keeps the queue, and who holds is what it answered:
//
//	c, err := client.New("https://locks.example.com", client.Options{Token: token})
//	g, err := c.Acquire(ctx, "nightly", client.AcquireOptions{TTL: time.Minute, Wait: 5 * time.Minute})
//	defer c.Release(ctx, g)
//	… with g.Sequencer in every request to what the name guards, and no longer than g.Left() says
//
// Nothing renews a [Grant] but [Client.Renew]. Work that may last longer than the TTL takes a lease of [Open]'s store.
//
// # A store's questions
//
// Consistency, fencing and the age of records are those of the store behind the server. Compare-and-swap is one request, a PUT
// with the version that it replaces. Push: yes, by requests that are answered when the record has changed. Requests: one for
// each operation. Permissions: the action "records" of the server's policy, on the prefix that is used.
//
// A request that may have reached the server and was not answered by it has an unknown outcome; one for which no connection could be
// had was not done. Answers of a proxy in between say nothing about a write.
package client
