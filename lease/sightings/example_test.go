package sightings_test

import (
	"context"
	"log"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/lease/sightings"
	"github.com/leasehold/leasehold/store"
)

// Look at a name once and end, as a cron job does. The next process continues to watch a holder that is silent, instead of
// beginning with a whole TTL again.
func ExampleNew() {
	var st store.Store // one that vouches for no age, such as etcd
	book := sightings.New("/var/lib/myprogram/sightings", "etcd://etcd-1:2379")
	m, err := lease.NewManager(st, lease.Options{Sightings: book})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()

	l, err := m.TryAcquire(context.Background(), "billing")
	if err := book.Save(); err != nil {
		log.Print(err) // the next process knows nothing of this one's sightings
	}
	if err != nil {
		log.Fatal(err) // a *lease.HeldError while the holder may be alive
	}
	log.Print("took ", l)
}
