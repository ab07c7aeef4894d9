package nats_test

import (
	"context"
	"log"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/leasehold/leasehold/lease"
	leasehold "github.com/leasehold/leasehold/store/nats"
)

// Hold a name on NATS, in a bucket that three servers keep.
func ExampleOpen() {
	ctx := context.Background()
	nc, err := nats.Connect("nats://nats-1:4222,nats://nats-2:4222", nats.MaxReconnects(-1))
	if err != nil {
		log.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		log.Fatal(err)
	}
	if err := leasehold.Create(ctx, js, "leases", 3); err != nil { // does nothing when it is there
		log.Fatal(err)
	}
	st, err := leasehold.Open(ctx, js, "leases", leasehold.Options{})
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
