package fence_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold/leasehold/fence"
)

// marks keep the highest token of each resource. A real one is as durable as what it guards.
type marks map[string]fence.Mark

func (m marks) Load(_ context.Context, resource string) (fence.Mark, error) { return m[resource], nil }

func (m marks) Save(_ context.Context, resource string, mark fence.Mark) error {
	m[resource] = mark
	return nil
}

// The guarded resource refuses a request of an earlier term, however late it arrives. It asks no clock and no lease.
func ExampleNewOffline() {
	guard, err := fence.NewOffline(marks{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	write := func(context.Context) error { return nil } // to the disk, the database, the device
	before := fence.Sequencer{Name: "billing", Holder: "web-1", Token: 41}
	now := fence.Sequencer{Name: "billing", Holder: "web-2", Token: 42}

	fmt.Println(guard.Do(ctx, now, write))
	fmt.Println(errors.Is(guard.Do(ctx, before, write), fence.ErrStale))
	// Output:
	// <nil>
	// true
}
