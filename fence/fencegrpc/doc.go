// Package fencegrpc carries sequencers over gRPC and refuses the requests of earlier terms.
//
// At the resource:
//
//	opts := fencegrpc.Options{Name: func(context.Context, string) string { return "billing" }} // the lease that guards it
//	server := grpc.NewServer(
//		grpc.ChainUnaryInterceptor(fencegrpc.UnaryServerInterceptor(guard, opts)),
//		grpc.ChainStreamInterceptor(fencegrpc.StreamServerInterceptor(guard, opts)),
//	)
//
// At the holder, for every call of a connection:
//
//	sequencer := func() (string, error) { return l.Sequencer().String(), l.Check() }
//	conn, err := grpc.NewClient(target,
//		grpc.WithChainUnaryInterceptor(fencegrpc.UnaryClientInterceptor(sequencer)),
//		grpc.WithChainStreamInterceptor(fencegrpc.StreamClientInterceptor(sequencer)),
//	)
//
// The sequencer is in the metadata key leasehold-sequencer. A refusal is a status with a
// google.rpc.ErrorInfo of the domain "leasehold", whose reason says what is wrong:
//
//	STALE_TOKEN           FailedPrecondition   its metadata are name, got, current and holder
//	SEQUENCER_MISSING     FailedPrecondition
//	SEQUENCER_INVALID     InvalidArgument
//	SEQUENCER_FORGED      PermissionDenied
//	SEQUENCER_OTHER_NAME  PermissionDenied     see [Options]
//	GUARD_UNAVAILABLE     Unavailable          the guard can't tell whether the term is current
//
// The client's interceptors turn STALE_TOKEN into an error that is still a gRPC status, and has the
// guard's *[fence.StaleError] in its chain. So a former holder learns that it has lost the lease.
package fencegrpc
