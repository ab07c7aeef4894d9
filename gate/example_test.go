package gate_test

import (
	"context"
	"log"
	"net/http"
	"net/url"

	"github.com/leasehold/leasehold/gate"
	"github.com/leasehold/leasehold/lease"
)

// Put a lease in front of a program that knows nothing of leases. Reads always pass; writes pass while this instance is the
// holder.
func ExampleNew() {
	var m *lease.Manager // of the store that all instances share
	upstream, err := url.Parse("http://127.0.0.1:8080")
	if err != nil {
		log.Fatal(err)
	}
	g, err := gate.New(gate.Options{Upstream: upstream, Name: "billing"})
	if err != nil {
		log.Fatal(err)
	}
	defer g.Close()
	go func() { log.Print(http.ListenAndServe(":80", g)) }()

	// Open returns when no write is under way any more, and the lease is released after that.
	err = m.Run(context.Background(), "billing", func(ctx context.Context, l *lease.Lease) error {
		return g.Open(ctx, l)
	})
	log.Print(err)
}
