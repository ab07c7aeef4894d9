package engines

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"sync"
	"testing"

	goredis "github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold/internal/servers"
)

// dialer returns locks through a client of its own.
type dialer func(t testing.TB, srv *servers.Server) locker

// floors are the least that a lease of an engine can be made of, where that can be told: two conditional writes of what says who
// holds the name, by the same client, with nothing around them. They lock nothing that anybody else wants.
var floors = map[string]dialer{"redis": redisFloor, "etcd": etcdFloor}

// floorValue is about what says who holds a name: owner, token, time to live, since when, host and process.
var floorValue = strings.Repeat("x", 300)

var errRefused = errors.New("refused, though nobody else wants it")

// redisSwap writes a value and its version if the version is the one before.
var redisSwap = goredis.NewScript(`
if (redis.call('HGET', KEYS[1], 'version') or '') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'version', ARGV[2], 'record', ARGV[3])
return 1`)

func redisFloor(t testing.TB, srv *servers.Server) locker {
	client := redisClient(t, srv, srv.Addr)
	run, versions := rand.Text(), sync.Map{} // versions by name
	swap := func(ctx context.Context, name string) error {
		old, _ := versions.LoadOrStore(name, "")
		version := rand.Text()
		n, err := redisSwap.Run(ctx, client, []string{run + name}, old, version, floorValue).Int()
		if err == nil && n != 1 {
			err = errRefused
		}
		versions.Store(name, version)
		return err
	}
	return func(ctx context.Context, name string) (func() error, error) {
		return func() error { return swap(ctx, name) }, swap(ctx, name)
	}
}

func etcdFloor(t testing.TB, srv *servers.Server) locker {
	client := etcdClient(t, srv.Addr)
	run, revisions := rand.Text(), sync.Map{} // revisions by name
	swap := func(ctx context.Context, name string) error {
		old, _ := revisions.LoadOrStore(name, int64(0))
		resp, err := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(run+name), "=", old)).Then(clientv3.OpPut(run+name, floorValue)).Commit()
		if err != nil {
			return err
		}
		if !resp.Succeeded {
			return errRefused
		}
		revisions.Store(name, resp.Header.Revision)
		return nil
	}
	return func(ctx context.Context, name string) (func() error, error) {
		return func() error { return swap(ctx, name) }, swap(ctx, name)
	}
}
