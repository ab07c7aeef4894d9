package fencepgx_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencepgx"
	"github.com/leasehold/leasehold/fence/fencesql"
	"github.com/leasehold/leasehold/fence/fencetest"
	"github.com/leasehold/leasehold/internal/proof/servers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(servers.Main(m)) }

func pool(t *testing.T, statements ...string) *pgxpool.Pool {
	t.Helper()
	p, err := pgxpool.New(t.Context(), servers.Postgres(t, servers.Shared()).URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	for _, text := range statements {
		if _, err := p.Exec(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

// do runs f in a transaction, again while PostgreSQL says that it may.
func do(ctx context.Context, p *pgxpool.Pool, f func(tx pgx.Tx) error) error {
	for {
		err := pgx.BeginFunc(ctx, p, f)
		var pg *pgconn.PgError
		if !errors.As(err, &pg) || pg.Code != "40001" {
			return err
		}
	}
}

// written reads what a query for one text returns, as a list of tokens.
func written(t *testing.T, p *pgxpool.Pool, query string) (all []fence.Token) {
	t.Helper()
	var text string
	if err := p.QueryRow(t.Context(), query).Scan(&text); err != nil {
		t.Fatal(err)
	}
	for word := range strings.FieldsSeq(text) {
		token, err := fence.ParseToken(word)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, token)
	}
	return all
}

func TestFinding_G8_TableInTransactionsOfPgx(t *testing.T) {
	marks, err := fencesql.NewTable(fencesql.PostgreSQL, "pgx_marks")
	if err != nil {
		t.Fatal(err)
	}
	p := pool(t, marks.Schema(), "CREATE TABLE pgx_lines (id bigserial, token bigint)")
	write := func(ctx context.Context, s fence.Sequencer) error {
		return do(ctx, p, func(tx pgx.Tx) error {
			if err := fencepgx.Admit(ctx, marks, tx, s); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, "INSERT INTO pgx_lines (token) VALUES ($1)", int64(s.Token))
			return err
		})
	}
	lines := func() []fence.Token {
		return written(t, p, "SELECT coalesce(string_agg(token::text, ' ' ORDER BY id), '') FROM pgx_lines")
	}
	fencetest.Story(t, write, fencetest.Options{Written: lines})
	if _, err := p.Exec(t.Context(), "DELETE FROM pgx_lines"); err != nil {
		t.Fatal(err)
	}
	t.Run("race", func(t *testing.T) { fencetest.Race(t, write, lines) })
}

func TestFinding_G8_ColumnsInTransactionsOfPgx(t *testing.T) {
	columns, err := fencesql.NewColumns(fencesql.PostgreSQL, "pgx_accounts")
	if err != nil {
		t.Fatal(err)
	}
	p := pool(t, "CREATE TABLE pgx_accounts (id bigint PRIMARY KEY, log text NOT NULL)", columns.Schema(), "INSERT INTO pgx_accounts VALUES (7, '')")
	fencetest.Story(t, func(ctx context.Context, s fence.Sequencer) error {
		f, err := columns.Fragment(s, 3)
		if err != nil {
			return err
		}
		return do(ctx, p, func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, "UPDATE pgx_accounts SET log = log || $1, "+f.Set+" WHERE id = $2 AND "+f.Where,
				append([]any{s.Token.String() + "\n", 7}, f.Args...)...)
			if err != nil {
				return err
			}
			return fencepgx.Admitted(ctx, columns, tx, tag, s, 1, "id = $1", 7)
		})
	}, fencetest.Options{Written: func() []fence.Token { return written(t, p, "SELECT log FROM pgx_accounts") }})
}
