package fencegrpc_test

import (
	"context"
	"log"

	"google.golang.org/grpc"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencegrpc"
	"github.com/leasehold/leasehold/lease"
)

// At the resource: refuse the calls of earlier terms.
func ExampleUnaryServerInterceptor() {
	var guard fence.Guard                                                                      // fence.NewOffline makes one that asks nobody
	opts := fencegrpc.Options{Name: func(context.Context, string) string { return "billing" }} // the lease that guards it
	srv := grpc.NewServer(
		grpc.ChainUnaryInterceptor(fencegrpc.UnaryServerInterceptor(guard, opts)),
		grpc.ChainStreamInterceptor(fencegrpc.StreamServerInterceptor(guard, opts)),
	)
	srv.Stop()
}

// At the holder: send the sequencer with every call of a connection, and none once the lease is lost.
func ExampleUnaryClientInterceptor() {
	var l *lease.Lease // held by this process
	sequencer := func() (string, error) { return l.Sequencer().String(), l.Check() }
	conn, err := grpc.NewClient("ledger:443",
		grpc.WithChainUnaryInterceptor(fencegrpc.UnaryClientInterceptor(sequencer)),
		grpc.WithChainStreamInterceptor(fencegrpc.StreamClientInterceptor(sequencer)),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
}
