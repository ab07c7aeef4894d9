package fenceredis_test

import (
	"context"
	"log"

	"github.com/redis/go-redis/v9"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fenceredis"
)

// Check the token in the same script as the write. Prefix and keys have one hash tag, so that a cluster keeps them together.
func ExampleGuard_Run() {
	ctx := context.Background()
	var client *redis.Client // the program's own
	var seq fence.Sequencer  // at the holder: l.Sequencer()

	guard, err := fenceredis.New(client, fenceredis.Options{Prefix: "{billing}:fence:"})
	if err != nil {
		log.Fatal(err)
	}
	deposit := fenceredis.NewScript(`return redis.call('INCRBY', KEYS[1], ARGV[1])`)
	balance, err := guard.Run(ctx, seq, deposit, []string{"{billing}:balance"}, 100).Int64()
	if err != nil {
		log.Fatal(err) // a *fence.StaleError when a later term has begun: nothing is written
	}
	log.Print("balance: ", balance)
}
