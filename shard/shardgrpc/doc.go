// Package shardgrpc routes gRPC calls to the workers that own their keys in a space of package
// shard.
//
// At each worker:
//
//	server := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(shardgrpc.UnaryServerInterceptor(owner, shardgrpc.Options{})),
//		grpc.ChainStreamInterceptor(shardgrpc.StreamServerInterceptor(owner, shardgrpc.Options{})),
//	)
//
// At a caller, one connection for all workers:
//
//	conn, err := shardgrpc.NewClient(router, shardgrpc.Options{}, grpc.WithTransportCredentials(creds))
//	ctx = metadata.AppendToOutgoingContext(ctx, shardgrpc.KeyHeader, key)
//
// The key of a call is in the metadata key leasehold-key, or where Options.Key says: in the
// request, for instance. The connection's balancer.Picker sends the call to the address that the
// router knows. A worker that doesn't own the key refuses the call with FAILED_PRECONDITION, and a
// google.rpc.ErrorInfo of the domain "leasehold":
//
//	WRONG_OWNER  FailedPrecondition  its metadata are owner (an address) and token, where known
//	KEY_MISSING  InvalidArgument     the call has no key, or several
//
// A unary call that was refused so is made again: at once at the owner that the worker has named,
// and else when the slice has come to its next owner, within Options.Wait and the call's deadline.
// So is a call that could not be sent, since no connection to its worker could be made. Any other
// failed call may have been carried out, and is not made again.
//
// # Limits
//
//   - A stream waits for an owner when it begins, and isn't begun again after a refusal.
//     [WrongOwner] reads the refusal.
//   - The client trusts workers: it follows the address that a refusal names.
//   - With TLS, a worker proves the host name of its own address, unless grpc.WithAuthority says
//     otherwise.
//   - NewClient brings the service configuration of the connection.
//   - The balancer rests on interfaces of gRPC that are marked experimental.
package shardgrpc
