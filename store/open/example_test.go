package open_test

import (
	"context"
	"log"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/open"
)

// Hold a name on the engine that a URL names, as --store of the command does.
func ExampleParse() {
	ctx := context.Background()
	url, err := open.Parse("etcd://etcd-1:2379,etcd-2:2379,etcd-3:2379") // a flag of the program, say
	if err != nil {
		log.Fatal(err)
	}
	st, err := url.Open(ctx, open.Options{})
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
