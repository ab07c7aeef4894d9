package shardgrpc

import (
	"context"
	"errors"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold/internal/shardcall"
	"github.com/leasehold/leasehold/shard"
)

// NewClient returns a connection that sends each call to the worker that owns its key, and makes
// connections to workers as they are needed. dial are as for [grpc.NewClient]. The router is the
// caller's, and stays open.
//
// While nobody owns the key, a call waits for an owner, by the router's push, for Options.Wait.
// When nobody does by then, or the name isn't in the space, the call returns UNAVAILABLE, and
// nothing was sent. A call without a key returns INVALID_ARGUMENT. When a worker refuses a unary
// call again and again, the last refusal stands: see [WrongOwner].
func NewClient(router *shard.Router, opts Options, dial ...grpc.DialOption) (*grpc.ClientConn, error) {
	if router == nil {
		return nil, errors.New("shardgrpc: router is nil")
	}
	c := &client{router, opts}
	return grpc.NewClient(scheme+":///workers", append([]grpc.DialOption{
		grpc.WithConnectParams(grpc.ConnectParams{
			// A worker that is restarted at its address is soon there again.
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
		grpc.WithResolvers(workers{}),
		grpc.WithChainUnaryInterceptor(c.unary),
		grpc.WithChainStreamInterceptor(c.stream),
	}, dial...)...)
}

type client struct {
	router *shard.Router
	opts   Options
}

// call returns what finds workers for a call, and the context that it is made with.
func (c *client) call(ctx context.Context, method string, req any) (context.Context, *shardcall.Call, error) {
	md, _ := metadata.FromOutgoingContext(ctx) // a copy
	key := c.opts.key(method, md, req)
	if key == "" {
		return nil, nil, errNoKey
	}
	if c.opts.Key != nil && len(md.Get(KeyHeader)) == 0 {
		ctx = metadata.AppendToOutgoingContext(ctx, KeyHeader, key)
	}
	return ctx, &shardcall.Call{Router: c.router, Key: key, Wait: c.opts.Wait}, nil
}

// first returns where a call is sent first, or the status that says why it isn't.
func first(ctx context.Context, call *shardcall.Call) (shard.Route, error) {
	route, err := call.First(ctx)
	switch {
	case err == nil:
		return route, nil
	case ctx.Err() != nil:
		return route, status.FromContextError(ctx.Err()).Err()
	}
	return route, status.Errorf(codes.Unavailable, "not sent: %q: %v", call.Key, err)
}

// last returns the error of a call that isn't made again: that of its context, if it is done.
func last(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	st := status.FromContextError(ctx.Err())
	if status.Code(err) == st.Code() {
		return err
	}
	return status.Errorf(st.Code(), "%s; before that: %v", st.Message(), err)
}

// unary is the interceptor of unary calls.
func (c *client) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	ctx, call, err := c.call(ctx, method, req)
	if err != nil {
		return err
	}
	defer call.End()
	route, err := first(ctx, call)
	if err != nil {
		return err
	}
	for {
		a := newAttempt(ctx, c.router, call.Key, route)
		err := invoke(a.ctx, method, req, reply, cc, opts...)
		sent := a.end()
		wrong := WrongOwner(err)
		if err == nil || wrong == nil && sent {
			return err
		}
		if ctx.Err() != nil {
			return last(ctx, err)
		}
		named := ""
		if wrong != nil {
			named = wrong.Now
		}
		var ok bool
		if route, ok = call.Next(ctx, route, named); !ok {
			return last(ctx, err)
		}
	}
}

// stream is the interceptor of streams: it finds the owner, and is done with it.
func (c *client) stream(
	ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, stream grpc.Streamer, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	ctx, call, err := c.call(ctx, method, nil)
	if err != nil {
		return nil, err
	}
	defer call.End()
	route, err := first(ctx, call)
	if err != nil {
		return nil, err
	}
	for {
		a := newAttempt(ctx, c.router, call.Key, route)
		cs, err := stream(a.ctx, desc, cc, method, append(opts, grpc.OnFinish(func(error) { a.cancel() }))...)
		if err == nil {
			return cs, nil
		}
		if sent := a.end(); sent {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, last(ctx, err)
		}
		var ok bool
		if route, ok = call.Next(ctx, route, ""); !ok {
			return nil, last(ctx, err)
		}
	}
}

// attempt is one attempt at a call, for the picker.
type attempt struct {
	ctx    context.Context
	cancel context.CancelFunc
	router *shard.Router
	key    string
	route  shard.Route

	mu     sync.Mutex
	picked bool               // it may have been sent
	watch  context.CancelFunc // nil when nothing watches
}

type attemptKey struct{}

func newAttempt(ctx context.Context, router *shard.Router, key string, route shard.Route) *attempt {
	a := &attempt{router: router, key: key, route: route}
	ctx, a.cancel = context.WithCancel(ctx)
	a.ctx = context.WithValue(ctx, attemptKey{}, a)
	return a
}

// end frees what the attempt uses, and reports whether the call may have been sent.
func (a *attempt) end() (sent bool) {
	a.cancel()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.picked
}

// waits is called by the picker while there is no connection yet: the attempt ends when the key has
// another owner before there is one.
func (a *attempt) waits() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.watch != nil || a.picked {
		return
	}
	ctx, cancel := context.WithCancel(a.ctx)
	a.watch = cancel
	go func() { // it ends when the call is sent, with the attempt, or when the key has moved
		known := a.route
		if a.route.Session == "" { // a worker has named it, which may know more than the router
			known, _ = a.router.Lookup(a.key)
		}
		for {
			now, err := a.router.Await(ctx, a.key, known)
			if err != nil {
				return
			}
			if now.Address != a.route.Address {
				break
			}
			known = now
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		if !a.picked {
			a.cancel()
		}
	}()
}

// pick says that the call is about to be sent. It reports false if the attempt has ended before: of
// a key that has just moved, say.
func (a *attempt) pick() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ctx.Err() != nil {
		return false
	}
	a.picked = true
	if a.watch != nil {
		a.watch()
	}
	return true
}
