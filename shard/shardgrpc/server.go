package shardgrpc

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/leasehold/leasehold/shard"
)

// UnaryServerInterceptor passes on only calls whose keys the worker o owns. Others are refused with
// FAILED_PRECONDITION, and who owns the key; calls without a key with INVALID_ARGUMENT. The context
// of a call that is passed on has the slice, for [Slice], and is done when the slice's is: the
// slice has been drained, or the session is about to end. The worker's Drain may wait for its
// calls. An error of a check that the handler returns is told as a refusal.
func UnaryServerInterceptor(o *shard.Owner, opts Options) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		ctx, done, err := admit(ctx, o, &opts, info.FullMethod, req)
		if err != nil {
			return nil, err
		}
		defer done()
		resp, err := handler(ctx, req)
		return resp, Refuse(err)
	}
}

// StreamServerInterceptor is UnaryServerInterceptor for streams. The worker checks a stream when it
// begins; its context is done when the slice has been drained.
func StreamServerInterceptor(o *shard.Owner, opts Options) grpc.StreamServerInterceptor {
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		ctx, done, err := admit(ss.Context(), o, &opts, info.FullMethod, nil)
		if err != nil {
			return err
		}
		defer done()
		return Refuse(handler(srv, &serverStream{ss, ctx}))
	}
}

// admit returns the context of a call that is passed on, and what ends it.
func admit(ctx context.Context, o *shard.Owner, opts *Options, method string, req any) (_ context.Context, done func(), err error) {
	md, _ := metadata.FromIncomingContext(ctx)
	key := opts.key(method, md, req)
	if key == "" {
		return nil, nil, errNoKey
	}
	s, err := o.Slice(key)
	if err != nil {
		return nil, nil, Refuse(err)
	}
	ctx, cancel := context.WithCancelCause(context.WithValue(ctx, sliceKey{}, s))
	stop := context.AfterFunc(s.Context(), func() { cancel(context.Cause(s.Context())) })
	return ctx, func() { stop(); cancel(nil) }, nil
}

type serverStream struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements [grpc.ServerStream].
func (s *serverStream) Context() context.Context { return s.ctx }
