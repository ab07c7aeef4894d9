package file_test

import (
	"context"
	"log"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/file"
)

// Hold a name among the processes of one machine. The file is made when it is missing.
func ExampleOpen() {
	ctx := context.Background()
	st, err := file.Open(ctx, "/var/lib/myprogram/leases.db", file.Options{CreateDir: true})
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
