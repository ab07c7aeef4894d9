package postgres

import (
	"context"
	"fmt"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(servers.Main(m)) }

var tables atomic.Int64

// newTable makes a table that nobody else uses.
func newTable(t testing.TB, dsn string) string {
	t.Helper()
	table := fmt.Sprintf("leases_%d_%d", time.Now().UnixNano(), tables.Add(1))
	pool := newPool(t, dsn)
	if err := Create(t.Context(), pool, table); err != nil {
		t.Fatal(err)
	}
	return table
}

// newPool returns a pool as the documentation advises, which is closed at the end of the test.
func newPool(t testing.TB, dsn string) *pgxpool.Pool {
	t.Helper()
	pool, err := connect(dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func connect(dsn string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	config.ShouldPing = ShouldPing
	HearWarnings(config)
	return pgxpool.NewWithConfig(context.Background(), config)
}

// at returns dsn with another host and port.
func at(t testing.TB, dsn, addr string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	u.Host = addr
	return u.String()
}

// owner is a store that owns its pool.
type owner struct {
	*Store
	pool *pgxpool.Pool
}

func (o owner) Close() error {
	err := o.Store.Close()
	o.pool.Close()
	return err
}

func openOwner(ctx context.Context, dsn string, opts Options) (store.Store, error) {
	pool, err := connect(dsn)
	if err != nil {
		return nil, err
	}
	s, err := Open(ctx, pool, opts)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return owner{s, pool}, nil
}

// mustOpen returns a store that is closed at the end of the test.
func mustOpen(t testing.TB, dsn string, opts Options) *Store {
	t.Helper()
	s, err := openOwner(t.Context(), dsn, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s.(owner).Store
}

func TestConformance(t *testing.T) {
	conform(t, Options{ClockStep: time.Millisecond})
}

// TestConformancePolling is the same without NOTIFY.
func TestConformancePolling(t *testing.T) {
	conform(t, Options{NoNotify: true})
}

func conform(t *testing.T, opts Options) {
	srv := servers.Postgres(t, servers.Shared())
	storetest.Run(t, func(t testing.TB) storetest.Instance {
		network := servers.Proxy(t, srv.Addr)
		opts := opts
		opts.Table = newTable(t, srv.URL)
		dsn := at(t, srv.URL, network.Addr)
		return storetest.Instance{
			Open:   func(ctx context.Context) (store.Store, error) { return openOwner(ctx, dsn, opts) },
			Pushes: true,
			HasAge: opts.ClockStep > 0,
			Cut:    func() error { network.Cut(); return nil },
			Heal:   func() error { network.Heal(); return nil },
		}
	})
}

func held(key string, token fence.Token) store.Record {
	return store.Record{Key: key, Owner: "holder", Token: token, TTL: time.Minute, Nonce: fmt.Sprint("n", token)}
}
