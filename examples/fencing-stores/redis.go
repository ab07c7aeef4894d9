package main

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fenceredis"
)

// The mark is in the slot of the balance, by the hash tag of both.
const redisKey, redisMarks = "{fencing-example}:balance", "{fencing-example}:fence:"

var increase = fenceredis.NewScript(`return redis.call('INCRBY', KEYS[1], ARGV[1])`)

type redisAccount struct {
	*redis.Client
	guard *fenceredis.Guard
}

func openRedis(ctx context.Context, address string) (account, error) {
	opts, err := redis.ParseURL(address)
	if err != nil {
		return nil, err
	}
	client := redis.NewClient(opts)
	guard, err := fenceredis.New(client, fenceredis.Options{Prefix: redisMarks})
	if err != nil {
		return nil, err
	}
	return redisAccount{client, guard}, client.Del(ctx, redisKey, redisMarks+"billing").Err()
}

func (a redisAccount) deposit(ctx context.Context, s fence.Sequencer, amount int) error {
	return a.guard.Run(ctx, s, increase, []string{redisKey}, amount).Err()
}

func (a redisAccount) balance(ctx context.Context) (int, error) {
	n, err := a.Get(ctx, redisKey).Int()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return n, err
}
