//go:build linux

package main

import (
	"context"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/etcd"
	"github.com/leasehold/leasehold/store/file"
	"github.com/leasehold/leasehold/store/postgres"
)

// openStore opens the store of a run. finish closes it, and what it was opened with.
func openStore(ctx context.Context, engine, at string) (st store.Store, finish func() error, err error) {
	switch engine {
	case onEtcd:
		client, err := newEtcdClient(ctx, at)
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

// newEtcdClient returns a client of the members at these addresses.
func newEtcdClient(ctx context.Context, at string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints: strings.Split(at, ","), Logger: clientv3.NewCtxClient(ctx).GetLogger(), // silent
	})
}

// closed closes the store, however long that takes: when all processes end at once and the disk is
// slow, it takes longer than Close waits for the lock of the file.
func closed(st store.Store) error {
	err := st.Close()
	for err != nil && strings.Contains(err.Error(), "another process holds its lock") {
		err = st.Close()
	}
	return err
}
