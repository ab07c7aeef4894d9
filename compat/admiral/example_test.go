package admiral_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

// Run one of several instances of a controller: it writes only while State.Guard lets it.
func ExampleNew() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	open := func(context.Context) (store.Store, error) { return memory.New(memory.Options{}), nil } // one that all Regions share
	checker, err := admiral.New(open, admiral.Config{
		LeaseName: "billing", PodIdentifier: "eu-1", WaitTime: 15 * time.Second, FailureThreshold: 3,
	}, admiral.Options{})
	if err != nil {
		log.Fatal(err)
	}
	state := admiral.NewState(clock.System())
	if _, err := state.Guard(ctx); errors.Is(err, admiral.ErrReadOnly) {
		fmt.Println("read-only until the lease is held")
	}
	ended := make(chan error)
	go func() { ended <- checker.Run(ctx, state) }()
	for status := state.Status(); status.ReadOnly; {
		if status, err = state.Changed(ctx, status.Seq); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("active")
	cancel()
	if err := <-ended; err != nil {
		log.Fatal(err)
	}
	// Output:
	// read-only until the lease is held
	// active
}
