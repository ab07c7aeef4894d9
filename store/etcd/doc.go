// Package etcd keeps records in etcd, version 3.4 or later.
//
//	client, err := clientv3.New(clientv3.Config{
//		Endpoints:         []string{"https://etcd-1:2379", "https://etcd-2:2379", "https://etcd-3:2379"},
//		DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 5 * time.Second,
//	})
//	st, err := etcd.New(client, etcd.Options{})
//
// A record is one key: the prefix and the record's key as it is, with a value in JSON. So etcdctl
// get --prefix leasehold/ shows what is held.
//
// # What it relies on
//
//   - etcd's default, linearizable reads, and transactions through Raft: what is acknowledged is on
//     the disks of a majority.
//   - Revisions that only rise. They are the versions of records.
//
// # Compare-and-swap
//
// Each write is one transaction. If the key's mod revision is that of the record's version (0 for a
// key that isn't stored), it puts or deletes, else it gets. So a conflict brings the current record
// in the same round trip. Acquire, renew and release of a lease take one round trip each.
//
// Writes that callers of one handle ask for while others run go together, at most 100 in one
// transaction. The transaction is sent when the running ones are answered, or a millisecond later.
// That is one request, and one entry of the Raft log, instead of many. If one of the writes is in
// conflict, nothing is written, and the others are sent again without it.
//
// # Outcomes
//
//	not done   a member refused it (no permission, no or an old token, too large, overloaded), or no connection was found
//	unknown    everything else
//
// "database space exceeded" is unknown, because the member that finds the database full applies
// that write. Unavailable is unknown, because a request that timed out or lost its leader may be
// committed later. The client repeats a write by itself when a member, or a proxy before it, says
// that the request was cancelled. The store notices, and calls the outcome unknown where the second
// copy met the first.
//
// # Waiting
//
// There is one watch for each key that is waited for, whatever the number of Waits for it, and all
// share one stream. A watch always begins at the present. Then the record is read, so nothing
// between the two is lost. (etcd's own concurrency package watches from the revision of a read.
// That is in the past as soon as anything was written, and etcd reports nothing to such a watch
// before its next round, up to 100 ms later.) The new record comes with the event.
//
// After a lost connection the client resumes the watch where it was. If that revision was compacted
// meanwhile, or the member lost its leader, the watch restarts and the waiters read again.
//
// A watch stays for 10 s after its last Wait, 1,024 of them at most. A Wait makes no request if it
// begins with the version that an unbroken watch reported last, or with one that was read since the
// watch began. No Wait returns an older record than the store has shown to any caller: where the
// watch is late, the record is read.
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
// 20 candidates that wait beside a leader, at a TTL of 15 s (go test ./internal/proof/engines -run
// TestFollowingOnEtcd -v):
//
//	                          requests a minute   events of watches
//	they follow               348                 570
//	they read                 1,632               0
//	version before, reading   2,400               0
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
