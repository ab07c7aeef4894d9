package engines

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/redis"
)

var _ = register(kind{
	name: "redis", start: servers.Redis,
	prepare: func(_ testing.TB, srv *servers.Server) instance {
		return instance{open: func(t testing.TB, addr string) store.Store {
			st, err := redis.New(redisClient(t, srv, addr), redis.Options{Prefix: "engines:"})
			return opened(t, st, err)
		}}
	},
	recipe: &recipe{name: "SET NX PX and Lua", dial: func(t testing.TB, srv *servers.Server) locker {
		client := redisClient(t, srv, srv.Addr)
		return func(ctx context.Context, name string) (func() error, error) {
			key, id := "recipe:"+name, rand.Text()
			for { // as its libraries do: there is nothing to wait on
				ok, err := client.SetNX(ctx, key, id, 15*time.Second).Result()
				if err != nil {
					return nil, err
				}
				if ok {
					return func() error { return unlockRedis(ctx, client, key, id) }, nil
				}
				time.Sleep(100 * time.Millisecond)
			}
		}
	}},
	floor: redisFloor,
	erase: func(t testing.TB, srv *servers.Server, name string) error {
		return redisClient(t, srv, srv.Addr).Del(t.Context(), "engines:"+name).Err()
	},
	release: 2,
	crowd:   &crowd{},
})

// redisSwap writes a value and its version if the version is the one before.
var redisSwap = goredis.NewScript(`
if (redis.call('HGET', KEYS[1], 'version') or '') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'version', ARGV[2], 'record', ARGV[3])
return 1`)

func redisFloor(t testing.TB, srv *servers.Server) locker {
	client := redisClient(t, srv, srv.Addr)
	return swapping(func(ctx context.Context, name, old string) (string, error) {
		next := rand.Text()
		n, err := redisSwap.Run(ctx, client, []string{name}, old, next, floorValue).Int()
		if err == nil && n != 1 {
			err = errRefused
		}
		return next, err
	})
}

// redisUnlock is the script of the manual's page on distributed locks.
var redisUnlock = goredis.NewScript(`if redis.call("get",KEYS[1]) == ARGV[1] then return redis.call("del",KEYS[1]) else return 0 end`)

func unlockRedis(ctx context.Context, client *goredis.Client, key, id string) error {
	n, err := redisUnlock.Run(ctx, client, []string{key}, id).Int()
	if err == nil && n != 1 {
		err = errors.New("the lock was lost")
	}
	return err
}

func redisClient(t testing.TB, srv *servers.Server, addr string) *goredis.Client {
	t.Helper()
	opts, err := goredis.ParseURL(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	opts.Addr, opts.PoolSize = addr, 64
	client := goredis.NewClient(opts)
	t.Cleanup(func() { client.Close() })
	return client
}
