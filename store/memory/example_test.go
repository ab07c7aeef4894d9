package memory_test

import (
	"context"
	"fmt"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/memory"
)

// A test of your program needs no server: its holders share a store in memory.
func ExampleNew() {
	st := memory.New(memory.Options{})
	defer st.Close()
	m, err := lease.NewManager(st, lease.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()

	err = m.Run(context.Background(), "billing", func(context.Context, *lease.Lease) error {
		fmt.Println("bills are written by one process at a time")
		return nil
	})
	fmt.Println(err)
	// Output:
	// bills are written by one process at a time
	// <nil>
}
