// Package fencesql guards what is kept in PostgreSQL or SQLite: the check of the fencing token is a part of the caller's own
// transaction, so that nothing can come between check and write. It needs nothing but database/sql and works with any driver, and
// within any library whose transaction is a [Tx]; for others there is [Conn], and package fencepgx for pgx.
//
// A [Table] has one mark for each lease, and guards all that its holder writes. The row of the mark is locked until the
// transaction ends, so a transaction of a later term waits for those of earlier ones that were admitted before, and further ones are
// refused from then on:
//
//	marks, err := fencesql.NewTable(fencesql.PostgreSQL, "leasehold_fence")
//	_, err = db.Exec(marks.Schema()) // once
//	…
//	tx, err := db.BeginTx(ctx, nil)
//	defer tx.Rollback()
//	err = marks.Admit(ctx, tx, l.Sequencer()) // first, and before any read
//	_, err = tx.ExecContext(ctx, "UPDATE accounts SET balance = balance - $1 WHERE id = $2", 100, 7)
//	err = tx.Commit()
//
// [Columns] keep a mark in every row of the caller's own table instead. That costs no further statement and no lock beyond the
// row's, but each row is guarded by itself: a request of an earlier term is refused only by the rows that a later term has
// written.
//
// What writes without this package is not guarded.
//
// # Isolation
//
// On PostgreSQL, READ COMMITTED, its default, does: after Admit the transaction reads all that earlier terms have written.
// SERIALIZABLE does too; as always there, a transaction may fail with SQLSTATE 40001 and has to be tried again from its
// beginning. At REPEATABLE READ no write of an earlier term comes after one of a later term either, but a transaction reads as
// of its beginning, which may have been before the last write of the earlier term: don't decide by what it reads. Under any of
// them 40P01, a deadlock, is possible when Admit comes after other locks were taken.
//
// SQLite has one writer at a time, and every transaction is serializable. Admit takes the write lock whether or not it writes. In
// a transaction that has read before, that fails with SQLITE_BUSY at once when another has written since: so call it first, or
// have all transactions begin immediately (for modernc.org/sqlite and mattn/go-sqlite3: _txlock=immediate), and set a busy timeout.
//
// On PostgreSQL, Admit takes advisory locks for the transaction, whose keys are hashes of 64 bits. A program that takes advisory locks
// under keys of its own shares the space of keys with it.
package fencesql
