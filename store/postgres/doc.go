// Package postgres keeps records in a table of a PostgreSQL database.
//
//	config, err := pgxpool.ParseConfig("postgres://app@db1,db2/app?target_session_attrs=read-write")
//	postgres.HearWarnings(config)
//	pool, err := pgxpool.NewWithConfig(ctx, config)
//	err = postgres.Create(ctx, pool, "leasehold") // once, by a user who may create tables
//	st, err := postgres.Open(ctx, pool, postgres.Options{Table: "leasehold"})
//
// It works with PostgreSQL 13 and later, and with servers that speak its SQL and its protocol to
// the letter. docs/how-stores-work.md describes statements, channels and locks.
//
// # What it relies on
//
// One primary, READ COMMITTED and a synced write-ahead log. A write is acknowledged when its commit
// has been synced. Where the session's synchronous_commit is off, the statement itself turns it on;
// local, on, remote_write and remote_apply stay as they are. A read sees all that was acknowledged
// before. Open refuses an unlogged table, which a crash empties, and a temporary one.
//
// A session that is read-only, on a standby or by default_transaction_read_only, is refused,
// because its reads would be stale. The store closes the connection and tries another one. So a
// pool finds the primary after its server has become a standby, if it has the hosts of both and
// target_session_attrs=read-write.
//
// # Cost
//
// Each operation is one statement in a transaction of its own, and one round trip. Changes that
// callers of a handle ask for at once share statement, commit and sync. Set the pool's ShouldPing
// to [ShouldPing]: else it pings a connection that was idle for a second, one round trip more.
//
// A handle with waiters takes one connection out of the pool for LISTEN, for all its Waits, until
// nobody has waited for half a minute. A write notifies only while somebody waits for its key. A
// user who may connect to the database can listen, and so learn the keys that are waited for, not
// the records. Behind a pooler waiters poll, every 20 ms to 1 s. [Options.NoNotify] turns off
// notifications.
//
// # Age
//
// Opt-in: the server's clock_timestamp() less the one of the write, less [Options.ClockStep]. It
// holds as long as no step and no difference of the servers' clocks is larger.
//
// # Outcomes
//
//	not done    a write that an ERROR refused, which was rolled back; a write that was never sent
//	retried     serialization failures and deadlocks (40001, 40P01)
//	unknown     all else: a connection that broke, a context that ended, a FATAL of a server that shuts down, a wait for a
//	            synchronous standby that the server gave up
//
// A record may show a write of this handle whose outcome is unknown. Get, Wait and a conflict
// return such a record only behind a second commit, which waits for the same standbys. While a
// standby that has to answer is missing, these calls block until ctx ends, and no lease is acquired
// or renewed. [Store.Confirm] is such a read for guards. It costs a sync of the log, and where
// standbys are synchronous, a round trip to them.
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
//   - Writes beyond what one row takes: each makes a new row version for autovacuum to collect. A
//     transaction that stays open for hours keeps autovacuum from it.
//
// # Permissions
//
// SELECT, INSERT, UPDATE and DELETE on the table, and USAGE on its schema if it isn't public.
// CREATE on the schema for [Create] alone. See [Grants].
package postgres
