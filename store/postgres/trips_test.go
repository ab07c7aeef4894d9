package postgres

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
)

// counted counts what is sent, which is a round trip each time, since nothing is sent before the answer to what came before; and the bytes that come.
type counted struct {
	net.Conn
	sent, received *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	c.sent.Add(1)
	return c.Conn.Write(b)
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.received.Add(int64(n))
	return n, err
}

// countedPool returns a pool as the documentation advises, which is closed at the end of the test, and what its connections count.
func countedPool(t testing.TB, dsn string, configure func(*pgxpool.Config)) (pool *pgxpool.Pool, sent, received *atomic.Int64) {
	t.Helper()
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	sent, received = new(atomic.Int64), new(atomic.Int64)
	config.ShouldPing = ShouldPing
	HearWarnings(config)
	config.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return counted{conn, sent, received}, err
	}
	if configure != nil {
		configure(config)
	}
	if pool, err = pgxpool.NewWithConfig(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool, sent, received
}

// TestRoundTrips: what acquiring, renewing, releasing and losing take is one each, also on a connection that was idle.
func TestRoundTrips(t *testing.T) {
	srv := servers.Postgres(t, servers.Shared())
	for name, mode := range map[string]pgx.QueryExecMode{"default": pgx.QueryExecModeCacheStatement, "exec": pgx.QueryExecModeExec, "simple": pgx.QueryExecModeSimpleProtocol, "describe": pgx.QueryExecModeDescribeExec} {
		t.Run(name, func(t *testing.T) {
			s, sent := onOne(t, srv.URL, srv.Addr, newTable(t, srv.URL), func(c *pgxpool.Config) { c.ConnConfig.DefaultQueryExecMode = mode })
			clean := false
			for round := 0; round < 2 || !clean && round < 20; round++ { // the first prepare, where answers come soon
				clean = true
				key := newVersion()
				var rec store.Record
				for _, step := range []struct {
					what string
					do   func() error
				}{
					{"acquire", func() (err error) { rec, err = s.Put(t.Context(), held(key, 1)); return err }},
					{"renew", func() (err error) { rec, err = s.Put(t.Context(), rec); return err }},
					{"lose", func() error {
						_, err := s.Put(t.Context(), held(key, 2))
						if errors.Is(err, store.ErrConflict) {
							return nil
						}
						return err
					}},
					{"read", func() error { _, err := s.Get(t.Context(), key); return err }},
					{"delete", func() error { return s.Delete(t.Context(), key, rec.Version) }},
				} {
					if round == 1 && step.what == "renew" {
						time.Sleep(1100 * time.Millisecond) // after which a pool pings, as a rule
					}
					sent.Store(0)
					if err := step.do(); err != nil {
						t.Fatalf("%s: %v", step.what, err)
					}
					if n := sent.Load(); n != 1 {
						if clean = false; mode != pgx.QueryExecModeCacheStatement {
							t.Errorf("%s took %d round trips, want 1", step.what, n)
						}
					}
				}
			}
			if !clean {
				t.Error("in no round each step took one round trip")
			}
		})
	}
}
