// Package zookeeper keeps records in ZooKeeper, one znode each, under one root znode. It takes the
// caller's own connection:
//
//	conn, events, err := zk.Connect([]string{"zk1:2181", "zk2:2181", "zk3:2181"}, 10*time.Second)
//	st, err := zookeeper.New(conn, zookeeper.Options{Root: "/leasehold"})
//
// The znodes are persistent. A record outlives the session of its writer, and an expired session
// costs no lease: the client opens another one, and the store continues with that. It needs
// ZooKeeper 3.5 or later, standalone or an ensemble.
//
// # Layout
//
//	/leasehold                 the root; made with the first record
//	/leasehold/billing         a record: one line with its birth, then JSON
//	/leasehold/billing/BIRTH   empty; there as long as that very record is
//
// A key is one znode name. A character that ZooKeeper refuses in a name (/ and some beyond ASCII),
// and %, are written as %XX per byte. Everything else is as it is in the key.
//
// # Compare-and-swap
//
// ZooKeeper's version restarts when a znode is deleted and made again. By itself it would let a
// late write hit the next record of that name. So each record gets a birth, a random id, which is
// the name of a child of the znode. A version is "BIRTH.N". A write is one multi, so it is atomic
// and takes one round trip:
//
//	create   create record, create record/BIRTH
//	put      check record/BIRTH exists, set record at N
//	delete   delete record/BIRTH, delete record at N
//
// The 32-bit count never overflows: a record that comes near its end is deleted and born again in
// the same multi.
//
// Writes that callers of one handle ask for while two others run go together, in one multi for each
// 64 KiB. It is sent when one of the two is answered, or a millisecond later. The largest record
// takes 64 KiB alone. When the server refuses such a multi, nothing is written, and each write is
// sent by itself.
//
// A conflict takes a second round trip, to read the record that was there instead: ZooKeeper's
// answer has no room for it.
//
// # Consistency
//
// Writes are linearizable: a quorum agrees on them. The one server at hand answers reads, from what
// it has. A sync before the read isn't enough for a linearizable Get. It asks the leader and no
// quorum, and a leader that has been replaced without knowing still answers.
//
// So Get and List first send a multi that only checks that the root is there. The multi takes the
// way of a write, through a quorum. When it is answered, the server at hand has applied all that
// came before. It costs a round trip and an entry in the log. A refused write has the same effect,
// so the read of a conflict needs nothing more. The read has to be in the same session, for which
// ZooKeeper never goes back in time. If the session was replaced in between, both are done again.
//
// # Waiting
//
// Wait sets a watch, one per key whatever the number of waiters, and the server reports the change.
// When the watch fires, a read sets it again, which all waiters share. The client sets watches
// again when it reconnects. It may miss a change then, so waiters have the key read again every 5
// to 10 s. After the session expired, this package sets the watches.
//
// # Outcomes
//
// The client has no context. When the context of a call ends, the request may be on its way or not
// even sent. So the outcome of a write is unknown, and the store still waits for the request, by
// Close at the latest.
//
// A call that begins while there is no session isn't sent before there is one. Its outcome is known
// if its context ends before that. A connection that was lost before the answer came makes the
// outcome of a write unknown.
//
// # Permissions
//
// CREATE, READ, WRITE and DELETE on the root and on the records (crwd; you may create the root
// beforehand). New znodes get Options.ACL.
//
// # What it can't guarantee
//
//   - Age. ZooKeeper's times are from the wall clock of its leader.
//   - Durability beyond that of the servers: with forceSync=no they acknowledge what they haven't
//     written to disk.
//   - A List of one moment: records are read one by one after their names.
//   - A List without end. The names come in one answer, which neither the server nor this client
//     limits (100,000 names of 40 bytes are 4 MB). But zk.WithMaxBufferSize and other tools limit
//     it, at 1 MB as a rule.
package zookeeper
