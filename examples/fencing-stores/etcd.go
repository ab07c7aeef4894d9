package main

import (
	"context"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fenceetcd"
)

const etcdKey = "fencing-example/balance"

type etcdAccount struct {
	*clientv3.Client
	guard *fenceetcd.Guard
}

func openEtcd(ctx context.Context, address string) (account, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{address}})
	if err != nil {
		return nil, err
	}
	guard, err := fenceetcd.New(client, fenceetcd.Options{Prefix: "fencing-example/fence/"})
	if err != nil {
		return nil, err
	}
	_, err = client.Delete(ctx, "fencing-example/", clientv3.WithPrefix())
	return etcdAccount{client, guard}, err
}

// deposit has a comparison of its own, as read-modify-write in etcd does. The check of the token is
// beside it.
func (a etcdAccount) deposit(ctx context.Context, s fence.Sequencer, amount int) error {
	for {
		n, revision, err := a.read(ctx)
		if err != nil {
			return err
		}
		resp, err := a.guard.Txn(ctx, s).
			If(clientv3.Compare(clientv3.ModRevision(etcdKey), "=", revision)).
			Then(clientv3.OpPut(etcdKey, strconv.Itoa(n+amount))).
			Commit()
		if err != nil || resp.Succeeded {
			return err
		}
	}
}

func (a etcdAccount) balance(ctx context.Context) (int, error) {
	n, _, err := a.read(ctx)
	return n, err
}

func (a etcdAccount) read(ctx context.Context) (n int, revision int64, err error) {
	resp, err := a.Get(ctx, etcdKey)
	if err != nil || len(resp.Kvs) == 0 {
		return 0, 0, err
	}
	n, err = strconv.Atoi(string(resp.Kvs[0].Value))
	return n, resp.Kvs[0].ModRevision, err
}
