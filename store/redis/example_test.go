package redis_test

import (
	"context"
	"log"

	goredis "github.com/redis/go-redis/v9"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/redis"
)

// Hold a name on Redis, and have it acknowledged by two replicas: a failover to one of these loses no lease.
func ExampleNew() {
	ctx := context.Background()
	client := goredis.NewClient(&goredis.Options{Addr: "redis:6379", ContextTimeoutEnabled: true})
	defer client.Close()
	st, err := redis.New(client, redis.Options{Prefix: "leasehold:", Replicas: 2})
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
	m, err := lease.NewManager(st, lease.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()

	err = m.Run(ctx, "billing", func(_ context.Context, l *lease.Lease) error {
		log.Print("we hold billing, with token ", l.Token())
		return nil
	})
	log.Print(err)
}
