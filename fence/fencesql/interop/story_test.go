package interop

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencesql"
	"github.com/leasehold/leasehold/fence/fencetest"
)

// A guard in the database keeps nothing in memory, so every write is one after a restart.
func TestTable(t *testing.T) {
	for kind, open := range kinds {
		t.Run(kind, func(t *testing.T) {
			d := open(t)
			t.Run("story", func(t *testing.T) {
				l := newLedger(t, d)
				fencetest.Story(t, l.write, fencetest.Options{Written: func() []fence.Token { return l.written(t) }})
			})
			t.Run("race", func(t *testing.T) {
				l := newLedger(t, d)
				fencetest.Race(t, l.write, func() []fence.Token { return l.written(t) })
			})
		})
	}
}

func TestColumns(t *testing.T) {
	for kind, open := range kinds {
		t.Run(kind, func(t *testing.T) {
			d := open(t)
			t.Run("story", func(t *testing.T) {
				a := newAccounts(t, d)
				fencetest.Story(t, a.write, fencetest.Options{Written: func() []fence.Token { return a.written(t) }})
			})
			t.Run("race", func(t *testing.T) {
				a := newAccounts(t, d)
				fencetest.Race(t, a.write, func() []fence.Token { return a.written(t) })
			})
			t.Run("upsert", func(t *testing.T) {
				a := newAccounts(t, d)
				fencetest.Story(t, a.upsert, fencetest.Options{Written: func() []fence.Token { return a.written(t) }})
			})
		})
	}
}

// accounts is a table with the columns of a fence, whose row 7 says under which tokens it was written.
type accounts struct {
	*database
	columns *fencesql.Columns
	table   string
}

func newAccounts(t testing.TB, d *database) *accounts {
	t.Helper()
	a := &accounts{database: d, table: name("accounts")}
	var err error
	if a.columns, err = fencesql.NewColumns(d.dialect, a.table); err != nil {
		t.Fatal(err)
	}
	d.exec(t, "CREATE TABLE "+a.table+" (id bigint PRIMARY KEY, open boolean NOT NULL, log text NOT NULL)")
	d.exec(t, "INSERT INTO "+a.table+" VALUES (7, true, ''), (8, false, '')")
	d.exec(t, a.columns.Schema())
	return a
}

// mark returns the placeholder of an argument.
func (d *database) mark(n string) string {
	return map[fencesql.Dialect]string{fencesql.PostgreSQL: "$", fencesql.SQLite: "?"}[d.dialect] + n
}

// write is one write to row 7 under s.
func (a *accounts) write(ctx context.Context, s fence.Sequencer) error { return a.update(ctx, s, 7) }

// update writes a row if it is open.
func (a *accounts) update(ctx context.Context, s fence.Sequencer, id int) error {
	f, err := a.columns.Fragment(s, 3)
	if err != nil {
		return err
	}
	return a.do(ctx, func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, "UPDATE "+a.table+" SET log = log || "+a.mark("1")+", "+f.Set+
			" WHERE id = "+a.mark("2")+" AND open AND "+f.Where, append([]any{s.Token.String() + "\n", id}, f.Args...)...)
		if err != nil {
			return err
		}
		return a.columns.Admitted(ctx, tx, res, s, 1, "id = "+a.mark("1"), id)
	})
}

// upsert writes row 7, which may have to be made.
func (a *accounts) upsert(ctx context.Context, s fence.Sequencer) error {
	f, err := a.columns.Fragment(s, 2)
	if err != nil {
		return err
	}
	return a.do(ctx, func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, "INSERT INTO "+a.table+" (id, open, log, fence_token, fence_holder)"+
			" VALUES (7, true, "+a.mark("1")+", "+a.mark("2")+", "+a.mark("3")+")"+
			" ON CONFLICT (id) DO UPDATE SET log = "+a.table+".log || excluded.log, "+f.Set+" WHERE "+f.Where,
			append([]any{s.Token.String() + "\n"}, f.Args...)...)
		if err != nil {
			return err
		}
		return a.columns.Admitted(ctx, tx, res, s, 1, "id = 7")
	})
}

func (a *accounts) written(t testing.TB) (all []fence.Token) {
	t.Helper()
	var log string
	if err := a.QueryRowContext(t.Context(), "SELECT log FROM "+a.table+" WHERE id = 7").Scan(&log); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(log) {
		token, err := fence.ParseToken(strings.TrimSpace(line))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, token)
	}
	return all
}

// No row is not the same as a row of a later term, nor as one that the caller's own condition leaves out.
func TestNoRow(t *testing.T) {
	for kind, open := range kinds {
		t.Run(kind, func(t *testing.T) {
			a := newAccounts(t, open(t))
			s := fence.Sequencer{Name: "n", Holder: "a", Token: 5}
			for id, says := range map[int]string{8: "another condition doesn't hold", 9: "no such row"} {
				err := a.update(t.Context(), s, id)
				if !errors.Is(err, sql.ErrNoRows) || errors.Is(err, fence.ErrStale) || !strings.Contains(err.Error(), says) {
					t.Errorf("row %d: %v, want %q", id, err, says)
				}
			}
		})
	}
}
