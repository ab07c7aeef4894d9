// Package etcd keeps records in etcd, version 3.4 or later.
//
//	client, err := clientv3.New(clientv3.Config{
//		Endpoints:         []string{"https://etcd-1:2379", "https://etcd-2:2379", "https://etcd-3:2379"},
//		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 5 * time.Second,
//	})
//	st, err := etcd.New(client, etcd.Options{})
//
// A record is one key: the prefix and the record's key as it is, with a value in JSON. So etcdctl
// get --prefix leasehold/ shows what is held. docs/how-stores-work.md describes transactions and
// watches.
//
// # What it relies on
//
//   - etcd's default, linearizable reads, and transactions through Raft: what is acknowledged is on
//     the disks of a majority.
//   - Revisions that only rise. They are the versions of records.
//
// # Outcomes
//
//	not done   a member refused it (no permission, no or an old token, too large, overloaded), or no connection was found
//	unknown    everything else
//
// "database space exceeded" is unknown, because the member that finds the database full applies
// that write. Unavailable is unknown, because a request that timed out or lost its leader may be
// committed later.
//
// # Cost
//
// Acquire, renew and release of a lease take one round trip each, and so does a conflict. Writes
// that callers of one handle ask for while others run share a transaction. A Wait makes no request
// while an unbroken watch reports the key.
//
// # Following a holder
//
// A caller that waits for a name can follow the record of its holder, and of the holder's session.
// It learns of each renewal, and counts the TTL from then. A connection that died in silence would
// report nothing. The client's keep-alives detect that, and the watch is resumed by another
// connection.
//
// The store claims CheapWait, among its Properties, for a client with such keep-alives.
// DialKeepAliveTime and DialKeepAliveTimeout have to be a minute at most together (a timeout of 0
// is 20 s). With another client, waiters look at the session every TTL/3. In both cases a waiter
// reads before it takes a name from a holder that seems dead. So a watch that is late, or dead,
// delays a takeover and never makes two holders.
//
// # Age
//
// None: etcd reports no time.
//
// # What it can't guarantee
//
//   - Versions that never come again over a restore from a snapshot, because revisions go back.
//     Restore with etcdutl snapshot restore --bump-revision 1000000000 --mark-compacted. Tokens
//     still rise, as long as wall clocks are roughly right.
//   - Durability where members run with --unsafe-no-fsync, or on disks that lie.
//   - Anything through client.KV wrappers, the gRPC proxy's cache or the leasing package: New
//     refuses wrappers.
//   - Noticing a connection that dies in silence, unless the client has a DialKeepAliveTime: see
//     [New]. The store can't detect it, because a new watch would use the same dead connection, and
//     so would reads.
//
// # Permissions
//
// With authentication on, the user needs readwrite on the prefix:
//
//	etcdctl role grant-permission ROLE --prefix=true readwrite leasehold/
//
// Nothing else is needed. With the right to list members, Inspect reports more.
package etcd
