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

	"github.com/leasehold/leasehold/internal/servers"
	"github.com/leasehold/leasehold/store"
)

// counted counts what is sent: each is a round trip, since nothing is sent before the answer to what came before.
type counted struct {
	net.Conn
	sent *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	c.sent.Add(1)
	return c.Conn.Write(b)
}

// TestRoundTrips: what acquiring, renewing, releasing and losing take is one each, also on a connection that was idle.
func TestRoundTrips(t *testing.T) {
	srv := servers.Postgres(t, servers.Shared())
	for name, mode := range map[string]pgx.QueryExecMode{"default": pgx.QueryExecModeCacheStatement, "exec": pgx.QueryExecModeExec, "simple": pgx.QueryExecModeSimpleProtocol, "describe": pgx.QueryExecModeDescribeExec} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			config, err := pgxpool.ParseConfig(srv.URL)
			if err != nil {
				t.Fatal(err)
			}
			config.MaxConns, config.ShouldPing = 1, ShouldPing
			config.ConnConfig.DefaultQueryExecMode = mode
			config.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, addr)
				return counted{conn, &sent}, err
			}
			pool, err := pgxpool.NewWithConfig(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(pool.Close)
			s, err := Open(t.Context(), pool, Options{Table: newTable(t, srv.URL)})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
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
