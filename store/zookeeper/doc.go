// Package zookeeper keeps records in ZooKeeper, one znode each, under one root znode. It takes the caller's own connection:
//
//	conn, events, err := zk.Connect([]string{"zk1:2181", "zk2:2181", "zk3:2181"}, 10*time.Second)
//	st, err := zookeeper.New(conn, zookeeper.Options{Root: "/leasehold"})
//
// The znodes are persistent. A record outlives the session of whoever wrote it, and an expired session costs no lease: the
// client opens another one, and the store goes on with that. ZooKeeper 3.5 or later, standalone or an ensemble.
//
// # Layout
//
//	/leasehold                 the root; made with the first record
//	/leasehold/billing         a record: one line with its birth, then JSON
//	/leasehold/billing/BIRTH   empty; there as long as that very record is
//
// A key is one znode name. What ZooKeeper refuses in a name (/ and some characters beyond ASCII) and % are written as %XX per
// byte; all else is as it is in the key.
//
// # Compare-and-swap
//
// The version that ZooKeeper counts starts anew when a znode is deleted and made again, so by itself it would let a
// write that comes late hit the next record of that name. So each record gets a birth, a random id, which is the name of a
// child of it. A version is "BIRTH.N". A write is one multi, hence atomic and one round trip:
//
//	create   create record, create record/BIRTH
//	put      check record/BIRTH exists, set record at N
//	delete   delete record/BIRTH, delete record at N
//
// The 32-bit count is not used up: a record that comes near its end is deleted and born again in the same multi.
//
// Writes of one handle that are asked for while two others are under way go together, when one is answered or a millisecond
// later: in one multi for each 64 KiB, which is what the largest record takes alone. When the server refuses such a multi
// nothing is written, and each write is sent by itself.
//
// A conflict takes a second round trip, to read the record that was there instead: ZooKeeper's answer has no room for it.
//
// # Consistency
//
// Writes are linearizable: they are agreed on by a quorum. Reads are answered by the one server at hand, from what it has.
// A sync before the read isn't enough for a linearizable Get: it asks the leader and no quorum, and a leader that has been
// replaced without knowing still answers. So Get and List first send a multi that only checks that the root is there. That
// goes the way of a write, through a quorum; when it is answered, the server at hand has applied all that came before. It
// costs a round trip and an entry in the log. A write that was refused is as good: the read of a conflict needs nothing more.
// The read has to be in the same session, for which ZooKeeper never goes back in time; if the session was replaced in
// between, both are done again.
//
// # Waiting
//
// Wait sets a watch, one per key whatever the number of waiters, and is told by the server. When the watch fires it is set
// again by a read, which all waiters share. The client sets watches anew when it reconnects. As it may miss a change in
// doing so, waiters have the key read again every 5 to 10 s. After the session expired they are set by this package.
//
// # Outcomes
//
// The client has no context. When the context of a call ends, the request may be on its way or not even sent: the
// outcome of a write is unknown, and the request is still waited for, by Close at the latest. A call that begins while there
// is no session isn't sent before there is one; its outcome is known if its context ends before that. A connection that was
// lost before the answer came makes the outcome of a write unknown.
//
// # Permissions
//
// CREATE, READ, WRITE and DELETE on the root and on the records (crwd; the root can be made beforehand). New znodes get
// Options.ACL.
//
// # What it can't promise
//
//   - Age. What ZooKeeper keeps of time is the wall clock of its leader.
//   - Durability beyond that of the servers: with forceSync=no they acknowledge what they haven't written to disk.
//   - A List of one moment: records are read one by one after their names.
//   - A List without end: the names come in one answer, which neither the server nor this client limits (100,000 names of
//     40 bytes are 4 MB), but zk.WithMaxBufferSize and other tools do, at 1 MB as a rule.
package zookeeper
