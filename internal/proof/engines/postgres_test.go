package engines

import (
	"context"
	"hash/fnv"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/postgres"
)

var postgresKind = kind{
	name: "postgres", start: servers.Postgres,
	prepare: func(t testing.TB, srv *servers.Server) instance {
		if err := postgres.Create(t.Context(), pgPool(t, srv, srv.Addr), "engines"); err != nil {
			t.Fatal(err)
		}
		return instance{open: func(t testing.TB, addr string) store.Store {
			st, err := postgres.Open(t.Context(), pgPool(t, srv, addr), postgres.Options{Table: "engines"})
			return opened(t, st, err)
		}}
	},
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
