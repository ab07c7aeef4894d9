package interop

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	gormpostgres "gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencesql"
	"github.com/leasehold/leasehold/fence/fencetest"
)

// Once the first transaction of a later term waits, further ones of the earlier term wait behind it, so that it waits for those only
// that it met.
func TestFinding_G4_ALaterTermIsNotPassedByAnEarlierOne(t *testing.T) {
	for _, isolation := range []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable} {
		l := postgresLedger(t, isolation)
		old := l.admitted(t, seq("a", 5))
		later := l.attempt(t.Context(), t, seq("b", 6))
		l.waits(t, later)
		var passing []*attempt
		for range 3 {
			a := l.attempt(t.Context(), t, seq("a", 5))
			l.waits(t, a)
			passing = append(passing, a)
		}
		l.commit(t, old, seq("a", 5))
		if err := <-later.done; err != nil {
			t.Fatal(err)
		}
		l.commit(t, later.tx, seq("b", 6))
		for _, a := range passing {
			if err := <-a.done; !errors.Is(err, fence.ErrStale) && !again(err) {
				t.Errorf("%v: %v", isolation, err)
			}
		}
		l.wrote(t, 5, 5, 6)
	}
}

// BenchmarkLaterTerm measures how long the first transaction of a later term waits, while writers of the earlier one are busy in
// transactions of 20 ms each.
func BenchmarkLaterTerm(b *testing.B) {
	for _, writers := range []int{2, 8, 32} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			l := newLedger(b, postgres(b, sql.LevelReadCommitted, ""))
			token := fence.Token(1)
			var waited, worst time.Duration
			for b.Loop() {
				ctx, cancel := context.WithTimeout(b.Context(), 30*time.Second)
				busy, begun := context.WithCancel(ctx)
				var old sync.WaitGroup
				under := seq("a", token)
				if err := l.write(ctx, under); err != nil {
					b.Fatal(err)
				}
				for range writers {
					old.Go(func() {
						for busy.Err() == nil {
							_ = l.do(ctx, func(tx *sql.Tx) error {
								if err := l.table.Admit(ctx, tx, under); err != nil {
									return err
								}
								_, err := tx.ExecContext(ctx, "SELECT pg_sleep(0.02)")
								return err
							})
						}
					})
				}
				time.Sleep(100 * time.Millisecond)
				began := time.Now()
				if err := l.write(ctx, seq("b", token+1)); err != nil {
					b.Error(err)
				}
				waited += time.Since(began)
				worst = max(worst, time.Since(began))
				begun()
				old.Wait()
				cancel()
				token += 2
			}
			b.ReportMetric(float64(waited.Milliseconds())/float64(b.N), "ms/later-term")
			b.ReportMetric(float64(worst.Milliseconds()), "ms-worst")
		})
	}
}

// A mark that no guard can have written is no low mark: it refuses all.
func TestFinding_G7_AMarkThatIsNoneRefusesAll(t *testing.T) {
	for kind, open := range kinds {
		t.Run(kind, func(t *testing.T) {
			d := open(t)
			l, a := newLedger(t, d), newAccounts(t, d)
			s := seq("a", 5)
			if err := errors.Join(l.write(t.Context(), s), a.write(t.Context(), s)); err != nil {
				t.Fatal(err)
			}
			d.exec(t, "UPDATE "+l.marks+" SET token = -5")
			d.exec(t, "UPDATE "+a.table+" SET fence_token = -5")
			for what, write := range map[string]func(context.Context, fence.Sequencer) error{"table": l.write, "columns": a.write} {
				for _, s := range []fence.Sequencer{seq("a", 4), seq("b", 6)} {
					if err := write(t.Context(), s); err == nil || errors.Is(err, fence.ErrStale) || !strings.Contains(err.Error(), "the stored token is -5") {
						t.Errorf("%s, token %d: %v", what, s.Token, err)
					}
				}
			}
			l.wrote(t, 5)
		})
	}
}

// An UPDATE of several rows, some of which a later term has written, is not told as done.
func TestFinding_G7_SomeOfSeveralRowsAreRefused(t *testing.T) {
	for kind, open := range kinds {
		t.Run(kind, func(t *testing.T) {
			a := newAccounts(t, open(t))
			a.exec(t, "INSERT INTO "+a.table+" (id, open, log) VALUES (9, true, '')")
			a.exec(t, "UPDATE "+a.table+" SET open = true")
			all := func(s fence.Sequencer, rows int64, where string) error {
				f, err := a.columns.Fragment(s, 1)
				if err != nil {
					return err
				}
				return a.do(t.Context(), func(tx *sql.Tx) error {
					res, err := tx.ExecContext(t.Context(), "UPDATE "+a.table+" SET log = 'x', "+f.Set+" WHERE open AND "+where+" AND "+f.Where, f.Args...)
					if err != nil {
						return err
					}
					return a.columns.Admitted(t.Context(), tx, res, s, rows, where)
				})
			}
			for _, rows := range []int64{3, fencesql.AllRows} {
				if err := all(seq("a", 5), rows, "id > 0"); err != nil {
					t.Error(err)
				}
			}
			if err := a.update(t.Context(), seq("b", 6), 8); err != nil { // one of three
				t.Fatal(err)
			}
			for _, rows := range []int64{3, fencesql.AllRows} {
				err := all(seq("a", 5), rows, "id > 0")
				var stale *fence.StaleError
				if !errors.As(err, &stale) || *stale != (fence.StaleError{Name: "n", Got: 5, Current: 6, Holder: "b"}) ||
					!strings.Contains(err.Error(), "2 rows were written") {
					t.Errorf("%d: %v", rows, err)
				}
			}
			if err := all(seq("c", 7), 2, "id > 0"); err == nil || !strings.Contains(err.Error(), "3 rows were written, and 2 meant") {
				t.Errorf("%v", err)
			}
			a.exec(t, "UPDATE "+a.table+" SET open = false WHERE id = 8")
			if err := all(seq("c", 7), 3, "id > 0"); !errors.Is(err, sql.ErrNoRows) || !strings.Contains(err.Error(), "another condition") {
				t.Errorf("%v", err)
			}
			if err := all(seq("c", 7), fencesql.AllRows, "id > 100"); !errors.Is(err, sql.ErrNoRows) {
				t.Errorf("%v", err)
			}
		})
	}
}

// A database handle isn't a transaction, whatever it is wrapped in.
func TestFinding_G8_HandlesAreNoTransactions(t *testing.T) {
	for _, handle := range []any{&sql.DB{}, &sql.Conn{}, &sqlx.DB{}, &gorm.PreparedStmtDB{}} {
		if _, ok := handle.(fencesql.Tx); ok {
			t.Errorf("%T can be taken for a transaction", handle)
		}
	}
}

// The guard in transactions of gorm, with and without PrepareStmt, and of sqlx.
func TestFinding_G8_OtherLibraries(t *testing.T) {
	for _, prepare := range []bool{false, true} {
		t.Run(fmt.Sprintf("gorm, PrepareStmt %t", prepare), func(t *testing.T) {
			d := postgres(t, sql.LevelDefault, "")
			db, err := gorm.Open(gormpostgres.New(gormpostgres.Config{Conn: d.DB}), &gorm.Config{PrepareStmt: prepare, Logger: logger.Discard})
			if err != nil {
				t.Fatal(err)
			}
			l, a := newLedger(t, d), newAccounts(t, d)
			fencetest.Story(t, func(ctx context.Context, s fence.Sequencer) error {
				return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
					return errors.Join(l.table.Admit(ctx, tx.Statement.ConnPool.(fencesql.Tx), s), tx.Exec("INSERT INTO "+l.lines+" (token) VALUES (?)", int64(s.Token)).Error)
				})
			}, fencetest.Options{Written: func() []fence.Token { return l.written(t) }})
			fencetest.Story(t, func(ctx context.Context, s fence.Sequencer) error {
				f, err := a.columns.Plain(s)
				if err != nil {
					return err
				}
				return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
					f.Values["log"] = gorm.Expr("log || ?", s.Token.String()+"\n")
					res := tx.Table(a.table).Where("id = ?", 7).Where(f.Where, f.WhereArgs...).Updates(f.Values)
					if res.Error != nil {
						return res.Error
					}
					return a.columns.AdmittedRows(ctx, tx.Statement.ConnPool.(fencesql.Tx), res.RowsAffected, s, 1, "id = $1", 7)
				})
			}, fencetest.Options{Written: func() []fence.Token { return a.written(t) }})
		})
	}
	t.Run("sqlx", func(t *testing.T) {
		d := postgres(t, sql.LevelDefault, "")
		l := newLedger(t, d)
		db := sqlx.NewDb(d.DB, "pgx")
		fencetest.Story(t, func(ctx context.Context, s fence.Sequencer) error {
			tx, err := db.BeginTxx(ctx, nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }()
			if err := l.table.Admit(ctx, tx, s); err != nil {
				return err
			}
			if _, err := tx.NamedExecContext(ctx, "INSERT INTO "+l.lines+" (token) VALUES (:token)", map[string]any{"token": int64(s.Token)}); err != nil {
				return err
			}
			return tx.Commit()
		}, fencetest.Options{Written: func() []fence.Token { return l.written(t) }})
	})
}
