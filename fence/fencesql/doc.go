// Package fencesql guards data in PostgreSQL or SQLite. The check of the fencing token is part of
// the caller's own transaction, so nothing can come between check and write.
//
// The package needs only database/sql and works with any driver, and within any library whose
// transaction is a [Tx]. For other libraries there is [Conn], and for pgx the package fencepgx.
//
// A [Table] has one mark for each lease, and guards all that its holder writes. The row of the mark
// is locked until the transaction ends. So a transaction of a later term waits for those of earlier
// terms that were admitted before. Further ones are refused from then on:
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
// [Columns] keep a mark in every row of the caller's own table instead. That costs no further
// statement, and no lock beyond the row's. But each row is guarded by itself: only the rows that a
// later term has written refuse a request of an earlier term.
//
// A write without this package is not guarded.
//
// # Isolation on PostgreSQL
//
//	level             after Admit
//	READ COMMITTED    the default; the transaction reads all that earlier terms have written
//	SERIALIZABLE      the same; a transaction may fail with SQLSTATE 40001, and must be retried from its beginning
//	REPEATABLE READ   no write of an earlier term comes after one of a later term, but the transaction reads as of its beginning.
//	                  That may be before the last write of the earlier term, so don't decide by what it reads
//
// Under any of them a deadlock, 40P01, is possible when Admit comes after other locks were taken.
//
// Admit takes advisory locks for the transaction. Their keys are hashes of 64 bits. A program that
// takes advisory locks under keys of its own shares the space of keys with them.
//
// # Isolation on SQLite
//
// SQLite has one writer at a time, and every transaction is serializable. Admit takes the write
// lock whether or not it writes. In a transaction that has read before, it fails with SQLITE_BUSY
// at once when another has written since. So call Admit first, or let all transactions begin
// immediately (for modernc.org/sqlite and mattn/go-sqlite3: _txlock=immediate). Also set a busy
// timeout.
package fencesql
