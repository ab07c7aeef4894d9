package shard_test

import (
	"context"
	"fmt"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/store/memory"
)

// Two partitions, of which each has one owner among the workers. This worker is alone, so both are its.
func ExampleJoin() {
	m, err := lease.NewManager(memory.New(memory.Options{}), lease.Options{})
	if err != nil {
		panic(err)
	}
	defer m.Close()
	started := make(chan string)
	space := shard.Space{Name: "orders", Names: []string{"p0", "p1"}}
	w, err := shard.Join(context.Background(), m, space, shard.Worker{
		Address: "10.0.0.7:80",
		Start:   func(_ context.Context, s *shard.Slice) error { started <- s.Name; return nil },
	})
	if err != nil {
		panic(err)
	}
	<-started
	<-started
	if err := w.Leave(context.Background()); err != nil { // drains, and hands over
		panic(err)
	}
	fmt.Println("both partitions were owned, and are free for the next worker")
	// Output: both partitions were owned, and are free for the next worker
}
