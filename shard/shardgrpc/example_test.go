package shardgrpc_test

import (
	"context"
	"log"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/shard/shardgrpc"
)

// A worker serves the keys that it owns, and says who owns the others.
func ExampleUnaryServerInterceptor() {
	var owner *shard.Owner // from shard.Join
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(shardgrpc.UnaryServerInterceptor(owner, shardgrpc.Options{})),
		grpc.ChainStreamInterceptor(shardgrpc.StreamServerInterceptor(owner, shardgrpc.Options{})),
	)
	defer server.Stop() // the program registers its services, and serves
}

// A caller's calls go to the workers that own their keys.
func ExampleNewClient() {
	var router *shard.Router // from shard.NewRouter
	conn, err := shardgrpc.NewClient(router, shardgrpc.Options{}, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	ctx := metadata.AppendToOutgoingContext(context.Background(), shardgrpc.KeyHeader, "acme")
	_ = ctx // for the methods of the program's client: pb.NewOrdersClient(conn).Pay(ctx, …)
}
