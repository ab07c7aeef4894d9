package fenceetcd_test

import (
	"context"
	"log"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fenceetcd"
)

// Check the token in the same transaction as the write: nothing can come between them.
func ExampleGuard_Txn() {
	ctx := context.Background()
	var client *clientv3.Client // the program's own
	var seq fence.Sequencer     // at the holder: l.Sequencer()

	guard, err := fenceetcd.New(client, fenceetcd.Options{})
	if err != nil {
		log.Fatal(err)
	}
	_, err = guard.Txn(ctx, seq).Then(clientv3.OpPut("orders/17", "paid")).Commit()
	if err != nil {
		log.Print(err) // a *fence.StaleError when a later term has begun: nothing is written
	}
}
