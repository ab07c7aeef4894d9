package engines

import (
	"context"
	"crypto/rand"
	"hash/fnv"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/postgres"
)

var _ = register(kind{
	name: "postgres", start: servers.Postgres,
	prepare: preparePostgres,
	recipe: &recipe{name: "pg_advisory_lock", volatile: true, dial: func(t testing.TB, srv *servers.Server) locker {
		pool := pgPool(t, srv, srv.Addr)
		return func(ctx context.Context, name string) (func() error, error) {
			h := fnv.New64a()
			h.Write([]byte(name))
			conn, err := pool.Acquire(ctx)
			if err != nil {
				return nil, err
			}
			if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", int64(h.Sum64())); err != nil {
				conn.Release()
				return nil, err
			}
			return func() error {
				defer conn.Release()
				_, err := conn.Exec(ctx, "SELECT pg_advisory_unlock($1)", int64(h.Sum64()))
				return err
			}, nil
		}
	}},
	floor: postgresFloor,
	erase: func(t testing.TB, srv *servers.Server, name string) error {
		_, err := pgPool(t, srv, srv.Addr).Exec(t.Context(), "DELETE FROM engines WHERE key = $1", name)
		return err
	},
	release: 1,
	planned: true,
	crowd: &crowd{
		options: []servers.Option{servers.Set("max_connections", "700")},
		open: func(t testing.TB, srv *servers.Server) store.Store { // the waits that begin at once would take a connection each
			st, err := postgres.Open(t.Context(), pgPoolOf(t, srv, srv.Addr, 2), postgres.Options{Table: "engines"})
			return opened(t, st, err)
		},
	},
})

func preparePostgres(t testing.TB, srv *servers.Server) instance {
	if err := postgres.Create(t.Context(), pgPool(t, srv, srv.Addr), "engines"); err != nil {
		t.Fatal(err)
	}
	return instance{open: func(t testing.TB, addr string) store.Store {
		st, err := postgres.Open(t.Context(), pgPool(t, srv, addr), postgres.Options{Table: "engines"})
		return opened(t, st, err)
	}}
}

func postgresFloor(t testing.TB, srv *servers.Server) locker {
	preparePostgres(t, srv)
	pool := pgPool(t, srv, srv.Addr)
	const (
		insert = `INSERT INTO engines (key, version, record, written) VALUES ($1, $2, $3::text::json, clock_timestamp()) ON CONFLICT DO NOTHING`
		update = `UPDATE engines SET version = $2, record = $3::text::json, written = clock_timestamp() WHERE key = $1 AND version = $4`
	)
	return swapping(func(ctx context.Context, name, old string) (string, error) {
		statement, args := insert, []any{name, rand.Text(), `"` + floorValue + `"`}
		next := args[1].(string)
		if old != "" {
			statement, args = update, append(args, old)
		}
		tag, err := pool.Exec(ctx, statement, args...)
		if err == nil && tag.RowsAffected() != 1 {
			err = errRefused
		}
		return next, err
	})
}

func pgPool(t testing.TB, srv *servers.Server, addr string) *pgxpool.Pool {
	t.Helper()
	return pgPoolOf(t, srv, addr, 64)
}

// pgPoolOf returns a pool of at most so many connections.
func pgPoolOf(t testing.TB, srv *servers.Server, addr string, connections int32) *pgxpool.Pool {
	t.Helper()
	u, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = addr
	config, err := pgxpool.ParseConfig(u.String())
	if err != nil {
		t.Fatal(err)
	}
	config.ShouldPing, config.MaxConns = postgres.ShouldPing, connections
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}
