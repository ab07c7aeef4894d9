// Package postgres keeps records in a table of a PostgreSQL database.
//
//	config, err := pgxpool.ParseConfig("postgres://app@db1,db2/app?target_session_attrs=read-write")
//	postgres.HearWarnings(config)
//	pool, err := pgxpool.NewWithConfig(ctx, config)
//	err = postgres.Create(ctx, pool, "leasehold") // once, by a user who may create tables
//	st, err := postgres.Open(ctx, pool, postgres.Options{Table: "leasehold"})
//
// It works with PostgreSQL 13 and later, and with servers that speak its SQL and its protocol to
// the letter.
//
// # What it relies on
//
// One primary, READ COMMITTED and a synced write-ahead log. Each operation is one statement in a
// transaction of its own, and one round trip. Changes of several records that callers ask for at
// once share them (see Compare-and-swap).
//
// A write is acknowledged when its commit has been synced. Where the session's synchronous_commit
// is off, the statement itself turns it on for its transaction; local, on, remote_write and
// remote_apply stay as they are. A read sees all that was acknowledged before, since a commit is
// shown to others only when it is durable. The table has to be an ordinary one: Open refuses an
// unlogged table, which a crash empties, and a temporary one.
//
// # Compare-and-swap
//
// A version is a random text of 26 characters that its writer made up. So none comes again, even
// after a failover that lost writes.
//
// The write is an UPDATE or DELETE whose condition is the version, or an INSERT … ON CONFLICT DO
// NOTHING. The same statement has a SELECT of the record that was there instead. That SELECT sees
// the table as it was when the statement began. So a writer that waited for another one and lost
// would see the version that it knew. Only then it sends the statement again.
//
// Many callers of a handle may write at once. While a change of a record runs, other writes wait
// for its answer, or for a millisecond. Then 4 to 32 go in one statement, with one commit and one
// sync.
//
//   - Each record is changed if it has its version, independently of the others.
//   - The statement waits for no lock. It leaves out a record that is locked (FOR UPDATE SKIP
//     LOCKED), or has another version. Those writes are sent again, each alone.
//   - When the server refuses the statement, all are sent alone. When the connection breaks, the
//     outcome of all is unknown.
//   - New records and deletions are always sent alone.
//
// # Waiting
//
// A write notifies a channel of its key, by pg_notify in its statement, but only while somebody
// waits for that key. The reason is cost. NOTIFY wakes every session of the database that listens
// to anything. It also makes the commits of a server queue, so that each waits for the sync of the
// one before. A write that nobody waits for pays for neither.
//
// A handle with waiters takes one connection out of the pool for LISTEN, for all its Waits. It
// returns the connection when nobody has waited for half a minute. While the pool has no idle
// connection, statements go over that one, one at a time. So with a short MaxConnIdleTime, a
// process that only waits has one connection.
//
// Besides, the handle reads what is waited for, all keys in one statement: every 5 to 10 s, and
// while it can't listen every 20 ms to 1 s. Behind a pooler it always polls. There the server's
// process isn't the one that the connection named at its start, and LISTEN may be another client's
// a moment later. [Options.NoNotify] turns off notifications.
//
// A user who may connect to the database can listen, and so learn the keys that are waited for, not
// the records.
//
// Advisory locks say who waits. h is the SHA-256 of schema, a zero byte and table. k is the first
// four bytes of a key's SHA-256 as an integer:
//
//	channel of a key   leasehold_ and h[0:8] in hex, then _ and k in hex, of 8 digits; the payload is the key
//	lock of a key      (h[8:12], k): held shared while somebody listens to the channel, taken by a write until its commit
//	channel of all     leasehold_ and h[0:8] in hex, then _all
//	lock of all        (h[12:16], 0): held by one of the waiters for more than 32 keys, taken shared by a write
//
// A waiter listens, takes the lock, and reads, in this order. Writes only try the locks, and notify
// where they can't have them. So the waiter's read shows what was written before it had the lock,
// and a notification reports what is written later.
//
// A process has at most 33 locks, because the server's table has room for 64 a connection
// (max_locks_per_transaction). A process that waits for more keys learns of the others on the
// channel of all. When the process that holds the lock of all is killed, others of that size take
// it within 5 s, and learn of changes by their timers meanwhile.
//
// Versions of this package before v1 notified leasehold_ and h[0:8] of every key, and listened to
// nothing else. Handles listen to that, too, and don't notify there. So while both versions run, an
// older process that waits learns of a newer one's write within 10 s. Each write of an older
// process wakes all waiters.
//
// # Age
//
// Opt-in, see [Options.ClockStep]: the server's clock_timestamp() less the one of the write, less
// the bound. It holds as long as no step of the server's wall clock is larger than the bound, nor
// the difference of the clocks of two servers at a failover.
//
// # Outcomes
//
//	not done    a write that an ERROR refused, which was rolled back; a write that was never sent
//	retried     serialization failures and deadlocks (40001, 40P01)
//	unknown     all else: a connection that broke, a context that ended, a FATAL of a server that shuts down, a wait for a
//	            synchronous standby that the server gave up
//
// When pgx gives up a statement, it has the server cancel it. A commit that waits for its standby
// then ends in success, on the primary alone. All sessions see it, and a failover takes it away. So
// a read proves nothing.
//
// A record may show a write of this handle whose outcome is unknown. Get, Wait and a conflict
// return such a record only behind a commit of another transaction, which waits for the same
// standbys. For that, pg_logical_emit_message writes some 60 bytes to the log, and changes nothing.
// While a standby that has to answer is missing, these calls block until ctx ends, and no lease is
// acquired or renewed. [Store.Confirm] is such a read for guards. It costs a sync of the log, and
// where standbys are synchronous, a round trip to them.
//
// The server warns when it gives up waiting. With [HearWarnings], the pool's connections pass the
// warning to the engine.
//
// # Primary and standby
//
// A session that is read-only, on a standby or by default_transaction_read_only, is refused,
// because its reads would be stale. The store closes the connection and tries another one. So a
// pool finds the primary after its server has become a standby, if it has the hosts of both and
// target_session_attrs=read-write.
//
// # What it can't guarantee
//
//   - Anything that the failover loses. A standby that follows asynchronously may lack the last
//     writes. A standby that is promoted while the old primary still runs makes two stores. Name
//     the standbys in synchronous_standby_names, and have the old primary fenced. Where a standby
//     replicates, or has a slot, and none is synchronous, Properties say fencing per primary.
//   - Anything on a server that runs with fsync=off. Inspect reports that.
//   - That a write was replicated if another session cancelled its wait for the standby
//     (statement_timeout, pg_cancel_backend), on a pool without [HearWarnings]. Properties say
//     fencing per primary then. Set no statement_timeout on a synchronous primary.
//   - To see a standby that is down and has no replication slot. The others are counted at Open,
//     and every 10 s while the handle writes: Properties change with what is seen.
//   - Writes beyond what one row takes: each makes a new row version for autovacuum to collect. The
//     table is made for that. A transaction that stays open for hours keeps autovacuum from it.
//
// # Permissions
//
// SELECT, INSERT, UPDATE and DELETE on the table, and USAGE on its schema if it isn't public.
// CREATE on the schema for [Create] alone. See [Grants].
//
// # Round trips
//
// Every operation is one. A pool pings a connection that was idle for a second before use, which is
// one more. Set its ShouldPing to [ShouldPing], which checks the connection without asking the
// server. With pgx's default mode a statement's first use on a connection takes one more, to
// prepare it.
package postgres
