// Command fencing-sql moves money in a database, under a lease: the check of the fencing token is
// in the same transaction as the transfer. A worker that was paused between its last look at its
// lease and its transfer finds, when it wakes up, that the database refuses it. With PostgreSQL the
// program is the same but for the driver and the dialect.
//
//	go run ./examples/fencing-sql
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencesql"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/memory"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fencing-sql:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "fencing-sql-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	bank, err := openBank(ctx, filepath.Join(dir, "bank.db"), out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bank.db.Close()) }()
	st := memory.New(memory.Options{})
	defer func() { err = errors.Join(err, st.Close()) }()
	m, err := lease.NewManager(st, lease.Options{Name: "worker"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	return tell(ctx, m, bank, out)
}

func tell(ctx context.Context, m *lease.Manager, bank *bank, out io.Writer) error {
	paused, err := m.Acquire(ctx, "payments")
	if err != nil {
		return err
	}
	if err := errors.Join(bank.transfer(ctx, paused.Sequencer(), 100), paused.Check()); err != nil {
		return err
	}
	fmt.Fprintln(out, "the worker has seen that its lease is valid, and is paused; another takes over")
	if err := paused.Release(ctx); err != nil { // as if it had expired meanwhile
		return err
	}
	if err := m.Run(ctx, "payments", func(ctx context.Context, l *lease.Lease) error {
		return bank.transfer(ctx, l.Sequencer(), 50)
	}); err != nil {
		return err
	}
	fmt.Fprintln(out, "the paused worker wakes up")
	err = bank.transfer(ctx, paused.Sequencer(), 100)
	if !errors.Is(err, fence.ErrStale) {
		return fmt.Errorf("the late transfer was not refused: %w", err)
	}
	fmt.Fprintln(out, "  the bank refuses it:", err)
	return bank.show(ctx)
}

// bank is a database of accounts, which only the holder of a lease may change.
type bank struct {
	db    *sql.DB
	marks *fencesql.Table
	out   io.Writer
}

func openBank(ctx context.Context, path string, out io.Writer) (*bank, error) {
	marks, err := fencesql.NewTable(fencesql.SQLite, "leasehold_fence")
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	for _, statement := range []string{
		marks.Schema(),
		"CREATE TABLE accounts (owner text PRIMARY KEY, balance bigint NOT NULL)",
		"INSERT INTO accounts VALUES ('alice', 300), ('bob', 0)",
	} {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return &bank{db, marks, out}, nil
}

// transfer moves money from alice to bob, unless s is of an earlier term than the database has
// heard of.
func (b *bank) transfer(ctx context.Context, s fence.Sequencer, amount int) error {
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // nothing, after a commit
	if err := b.marks.Admit(ctx, tx, s); err != nil {
		return err
	}
	for _, statement := range []string{
		"UPDATE accounts SET balance = balance - ? WHERE owner = 'alice'",
		"UPDATE accounts SET balance = balance + ? WHERE owner = 'bob'",
	} {
		if _, err := tx.ExecContext(ctx, statement, amount); err != nil {
			return err
		}
	}
	fmt.Fprintf(b.out, "  the bank moves %d under token %d\n", amount, s.Token)
	return tx.Commit()
}

func (b *bank) show(ctx context.Context) error {
	var alice, bob int
	err := b.db.QueryRowContext(ctx, `SELECT (SELECT balance FROM accounts WHERE owner = 'alice'),
		(SELECT balance FROM accounts WHERE owner = 'bob')`).Scan(&alice, &bob)
	if err == nil {
		_, err = fmt.Fprintf(b.out, "alice has %d, bob has %d\n", alice, bob)
	}
	return err
}
