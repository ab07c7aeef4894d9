// Package postgres keeps records in a table of a PostgreSQL database.
//
//	config, err := pgxpool.ParseConfig("postgres://app@db1,db2/app?target_session_attrs=read-write")
//	postgres.HearWarnings(config)
//	pool, err := pgxpool.NewWithConfig(ctx, config)
//	err = postgres.Create(ctx, pool, "leasehold") // once, by who may make tables
//	st, err := postgres.Open(ctx, pool, postgres.Options{Table: "leasehold"})
//
// It works with PostgreSQL 13 and later, and the same on what speaks its SQL and its protocol to the letter.
//
// # What it relies on
//
// On one primary, READ COMMITTED and a synced write-ahead log. Each operation is one statement in a transaction of its own,
// and one round trip; changes of several records that are asked for at once share them, see below. A write is acknowledged when its commit has been synced: where the session's synchronous_commit is
// off, the statement itself turns it on for its transaction; local, on, remote_write and remote_apply stay as they are. A
// read sees all that was acknowledged before, since a commit is shown to others only when it is durable. The table has to be
// an ordinary one: Open refuses an unlogged table, which a crash empties, and a temporary one.
//
// # Compare-and-swap
//
// A version is a random text of 26 characters that its writer made up, so none comes again, not even after a failover that
// lost writes. The write is an UPDATE or DELETE whose condition is the version, or an INSERT … ON CONFLICT DO NOTHING, and
// in the same statement a SELECT of the record that was there instead. That SELECT sees the table as it was when the
// statement began, so a writer that waited for another one and lost would be shown the version that it knew; it sends the
// statement again, and only then.
//
// What many callers of a handle ask for at once shares statements: while a change of a record is under way, others that come wait for its
// answer, or for a millisecond, and then 4 to 32 go in one statement, with one commit and one sync. In it each record is changed if it
// has its version, by itself. The statement waits for no lock: a record that is locked is left out (FOR UPDATE SKIP LOCKED), and
// so is one that has another version. Those writes are sent again, each alone. When the server refuses the statement, all are sent alone. When the
// connection breaks, the outcome of all is unknown. New records and deletions are always sent alone.
//
// # Waiting
//
// A write notifies a channel of its key, by pg_notify in its statement, while somebody waits for that key, and nobody else. NOTIFY
// wakes every session of the database that listens to anything, and makes the commits of a server queue, so that each waits for the sync of the one
// before: a write that nobody waits for pays for neither.
//
// A handle on which somebody waits takes one connection
// out of the pool for LISTEN, for all its Waits, and gives it back when nobody has waited for half a minute. While the pool has no
// idle connection, statements are sent on that one, one at a time: with a short MaxConnIdleTime, a process that only waits has one connection. Beneath that it
// reads what is waited for: every 5 to 10 s, and while it can't listen every 20 ms to 1 s, all keys in one statement. Behind
// a pooler it always polls: where the server's process isn't the one that the connection was told of at its start, LISTEN
// may be another client's a moment later. [Options.NoNotify] leaves all of this out. Who may connect to the database can listen, and so
// learn the keys that are waited for, not the records.
//
// Advisory locks say who waits. With h the SHA-256 of schema, a zero byte and table, and k the first four bytes of a key's SHA-256 as an integer:
//
//	channel of a key   leasehold_ and h[0:8] in hex, then _ and k in hex, of 8 digits; the payload is the key
//	lock of a key      (h[8:12], k): held shared while somebody listens to the channel, taken by a write until its commit
//	channel of all     leasehold_ and h[0:8] in hex, then _all
//	lock of all        (h[12:16], 0): held by one of those who wait for more than 32 keys, taken shared by a write
//
// A waiter listens, has the lock, and reads, in this order. Writes only try the locks, and notify where they can't have them. So what was
// written before the waiter had the lock shows to it, and what is written later is told. A process has at most 33 locks, for the
// server's table has room for 64 a connection (max_locks_per_transaction). The other keys of one that waits for more are told on the channel of all.
// When the process that holds the lock of all is killed, others of that size take it within 5 s, and learn by their timers meanwhile.
//
// Versions of this package before v1 notified leasehold_ and h[0:8] of every key, and listened to nothing else. Handles listen to that, too, and notify
// nobody there. So while both versions run, an older process that waits learns of a newer one's write within 10 s, and each write of an older one
// wakes all who wait.
//
// # Age
//
// Opt-in, see [Options.ClockStep]: the server's clock_timestamp() less the one of the write, less the bound. It holds as
// long as no step of the server's wall clock is larger than the bound, nor the difference of the clocks of two servers at a
// failover.
//
// # Outcomes
//
// A write that was refused by an ERROR was rolled back, and is not done; so is one that was never sent. Serialization
// failures and deadlocks (40001, 40P01) are tried again. All else is unknown: a connection that broke, a context that ended,
// a FATAL of a server that shuts down, a wait for a synchronous standby that the server gave up.
//
// When pgx gives a statement up, it has the server cancel it. A commit that waits for its standby then ends in success, on the
// primary alone: all sessions see it, and a failover takes it away. So a read proves nothing. A record that shows a write of this
// handle whose outcome is unknown is returned, by Get, by Wait and in a conflict, only behind a commit of another transaction, which
// waits for the same standbys: pg_logical_emit_message writes some 60 bytes to the log, and changes nothing. While a standby that
// has to answer is missing, these calls block until ctx ends, no lease is taken and none is renewed. [Store.Confirm] is such a read
// for guards. It costs a sync of the log, and where standbys are synchronous a round trip to them.
//
// The server says by a warning that it gave up to wait: [HearWarnings] has the pool's connections tell the engine.
//
// # Primary and standby
//
// A session that is read-only, on a standby or by default_transaction_read_only, is refused: its reads would be stale. The
// connection is closed and another one is tried, so that a pool whose connections lead to a server that has become a standby
// finds the primary, given the hosts of both and target_session_attrs=read-write.
//
// # What it can't promise
//
//   - Anything that the failover loses. A standby that follows asynchronously may lack the last writes, and one that was
//     promoted while the old primary goes on makes two stores. Name the standbys in synchronous_standby_names, and have the
//     old primary fenced. Where a standby replicates, or has a slot, and none is synchronous, Properties say fencing per
//     primary. A server that runs with fsync=off promises nothing; Inspect says so.
//   - That a write was replicated whose wait for the standby somebody else cancelled (statement_timeout, pg_cancel_backend), on a
//     pool without [HearWarnings]: Properties say fencing per primary then. Set no statement_timeout on a synchronous primary.
//   - To see a standby that is down and has no replication slot. The others are counted at Open, and every 10 s while the handle
//     writes: Properties change with what is seen.
//   - Writes beyond what one row takes: each makes a new row version for autovacuum to collect. The table is made for that; a
//     transaction that stays open for hours keeps autovacuum from it.
//
// # Permissions
//
// SELECT, INSERT, UPDATE and DELETE on the table, and USAGE on its schema if it isn't public; CREATE on the schema for
// [Create] alone. See [Grants].
//
// # Round trips
//
// Every operation is one. A pool pings a connection that was idle for a second before it gives it out, which is one more; set
// its ShouldPing to [ShouldPing], which looks at the connection without asking the server. With pgx's default mode a
// statement's first use on a connection takes one more, to prepare it.
package postgres
