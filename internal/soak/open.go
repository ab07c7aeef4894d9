//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold/internal/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/etcd"
	"github.com/leasehold/leasehold/store/file"
	"github.com/leasehold/leasehold/store/postgres"
)

// launch starts the server of the run's engine, if that has one, and says where it is. stop is to be called at the end.
func (c *config) launch(ctx context.Context, dir string) (stop func(), err error) {
	if c.Engine == onFile {
		if c.Store == "" {
			c.Store = filepath.Join(dir, "soak.db")
		}
		return func() {}, nil
	}
	srv, err := servers.Launch(ctx, c.Engine, filepath.Join(dir, c.Engine))
	if err != nil {
		return nil, fmt.Errorf("-engine %s: %w", c.Engine, err)
	}
	c.Store = srv.URL
	if c.Engine == onPostgres {
		err = withPool(ctx, c.Store, func(pool *pgxpool.Pool) error { return postgres.Create(ctx, pool, "") })
	}
	if err != nil {
		srv.Stop()
		return nil, err
	}
	return srv.Stop, nil
}

func withPool(ctx context.Context, url string, f func(*pgxpool.Pool) error) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	return f(pool)
}

// openStore opens the store of a run. finish closes it, and what it was opened with.
func openStore(ctx context.Context, engine, at string) (st store.Store, finish func() error, err error) {
	switch engine {
	case onEtcd:
		client, err := clientv3.New(clientv3.Config{
			Endpoints: []string{at}, Logger: clientv3.NewCtxClient(ctx).GetLogger(), // silent
		})
		if err != nil {
			return nil, nil, err
		}
		s, err := etcd.New(client, etcd.Options{})
		if err != nil {
			return nil, nil, errors.Join(err, client.Close())
		}
		return s, func() error { return errors.Join(s.Close(), client.Close()) }, nil
	case onPostgres:
		pool, err := pgxpool.New(ctx, at)
		if err != nil {
			return nil, nil, err
		}
		s, err := postgres.Open(ctx, pool, postgres.Options{})
		if err != nil {
			pool.Close()
			return nil, nil, err
		}
		return s, func() error {
			defer pool.Close()
			return s.Close()
		}, nil
	}
	s, err := file.Open(ctx, at, file.Options{})
	if err != nil {
		return nil, nil, err
	}
	return s, func() error { return closed(s) }, nil
}

// closed closes the store, however long that takes: when all processes end at once and the disk is slow, it takes longer than Close
// waits for the lock of the file.
func closed(st store.Store) error {
	err := st.Close()
	for err != nil && strings.Contains(err.Error(), "another process holds its lock") {
		err = st.Close()
	}
	return err
}
