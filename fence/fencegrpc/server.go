package fencegrpc

import (
	"context"
	"errors"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/leasehold/leasehold/fence"
)

// Options of the server's interceptors. A method is given in full: /package.Service/Method.
type Options struct {
	// Keys, unless nil, verify sequencers: one without a signature of theirs is refused. Keys that
	// are empty refuse all.
	Keys *fence.Keys

	// Name returns the name of the lease that guards the resource of a call. A sequencer of another
	// lease is refused. When Name is nil, the client chooses the name, and with it the term or the
	// mark that judges the call. Then the holder of any lease gets through. With an offline guard
	// and no Keys, so does a client that makes up a name. Leave it nil only where you trust all
	// clients to name the right lease.
	Name func(ctx context.Context, method string) string

	// Open returns whether a call needs no sequencer, such as one that changes nothing, a health
	// check or reflection. When Open is nil, every call needs one. A sequencer that is there is
	// checked in any case.
	Open func(ctx context.Context, method string) bool

	// Messages has every message that a stream receives checked as well, before the handler gets
	// it. Otherwise a stream is checked only when it begins, and may continue without limit.
	Messages bool
}

type contextKey struct{}

// From returns the sequencer of a call that an interceptor admitted.
func From(ctx context.Context) (fence.Sequencer, bool) {
	s, ok := ctx.Value(contextKey{}).(fence.Sequencer)
	return s, ok
}

// sequencer returns that of a call, or false for one that needs none.
func (o *Options) sequencer(ctx context.Context, method string) (s fence.Sequencer, guarded bool, err error) {
	texts := metadata.ValueFromIncomingContext(ctx, fence.MetadataKey)
	switch {
	case len(texts) > 1:
		return s, true, errors.Join(fence.ErrMalformed, errors.New("the key "+fence.MetadataKey+" is there more than once"))
	case len(texts) == 1 && o.Keys != nil:
		s, err = o.Keys.Verify(texts[0])
	case len(texts) == 1:
		s, err = fence.ParseSequencer(texts[0])
	case o.Open != nil && o.Open(ctx, method):
		return s, false, nil
	default:
		return s, true, errMissing
	}
	if err == nil && o.Name != nil {
		err = s.Of(o.Name(ctx, method))
	}
	return s, true, err
}

// UnaryServerInterceptor admits a call if guard admits its sequencer. With a *[fence.Offline] as
// the guard, a call of a later term waits until those of earlier terms have returned, and their
// contexts are cancelled. A *[fence.StaleError] that the handler returns, of a guard of its own, is
// reported in the same way as one of guard.
func UnaryServerInterceptor(guard fence.Guard, opts Options) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
		s, guarded, err := opts.sequencer(ctx, info.FullMethod)
		switch {
		case err != nil:
			return nil, refusal(err)
		case !guarded:
			return handler(ctx, req)
		}
		handled := false
		err = fence.Do(ctx, guard, s, func(ctx context.Context) (err error) {
			handled = true
			resp, err = handler(context.WithValue(ctx, contextKey{}, s), req)
			return err
		})
		if err != nil && !handled {
			return nil, refusal(err)
		}
		return resp, own(err)
	}
}

// StreamServerInterceptor admits a stream if guard admits its sequencer. With [Options.Messages] it
// admits each message if guard still does. A stream that was refused a message ends with the
// refusal, whatever the handler returns.
//
// No guard orders what a handler does between two messages and what a later term does. A resource
// that needs that order checks by itself, by [fence.Offline.Do] for example.
func StreamServerInterceptor(guard fence.Guard, opts Options) grpc.StreamServerInterceptor {
	return func(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		ctx := ss.Context()
		s, guarded, err := opts.sequencer(ctx, info.FullMethod)
		if err == nil && guarded {
			err = guard.Check(ctx, s)
		}
		switch {
		case err != nil:
			return refusal(err)
		case !guarded:
			return handler(srv, ss)
		}
		g := &serverStream{ServerStream: ss, ctx: context.WithValue(ctx, contextKey{}, s)}
		if opts.Messages {
			g.check = func() error { return guard.Check(ctx, s) }
		}
		err = handler(srv, g)
		if r := g.refusal.Load(); r != nil {
			return *r
		}
		return own(err)
	}
}

// own returns a handler's error, told as a refusal if it is one.
func own(err error) error {
	if errors.Is(err, fence.ErrStale) {
		return refusal(err)
	}
	return err
}

// serverStream is a stream that was let through.
type serverStream struct {
	grpc.ServerStream
	ctx     context.Context
	check   func() error // of each message; nil when none is checked
	refusal atomic.Pointer[error]
}

// Context implements [grpc.ServerStream].
func (g *serverStream) Context() context.Context { return g.ctx }

// RecvMsg implements [grpc.ServerStream].
func (g *serverStream) RecvMsg(m any) error {
	if r := g.refusal.Load(); r != nil {
		return *r
	}
	if err := g.ServerStream.RecvMsg(m); err != nil || g.check == nil {
		return err
	}
	if err := g.check(); err != nil {
		err = refusal(err)
		g.refusal.Store(&err)
		return err
	}
	return nil
}
