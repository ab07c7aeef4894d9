package consul_test

import (
	"context"
	"log"

	"github.com/hashicorp/consul/api"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/consul"
)

// Hold a name on Consul. The agent's address and token come from CONSUL_HTTP_ADDR and CONSUL_HTTP_TOKEN.
func ExampleNew() {
	ctx := context.Background()
	client, err := api.NewClient(api.DefaultConfig())
	if err != nil {
		log.Fatal(err)
	}
	st, err := consul.New(client, consul.Options{Prefix: "leasehold"})
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
