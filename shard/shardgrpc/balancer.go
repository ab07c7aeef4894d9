package shardgrpc

import (
	"sync"

	"google.golang.org/grpc/balancer"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/status"
)

const (
	scheme = "leasehold-shard"
	policy = "leasehold_shard"
)

func init() { balancer.Register(builder{}) } // as all balancers are

// workers is the resolver: it knows no address, since the balancer asks the router for each call.
type workers struct{}

// Scheme implements [resolver.Builder].
func (workers) Scheme() string { return scheme }

// Build implements [resolver.Builder].
func (workers) Build(_ resolver.Target, cc resolver.ClientConn, _ resolver.BuildOptions) (resolver.Resolver, error) {
	config := cc.ParseServiceConfig(`{"loadBalancingConfig":[{"` + policy + `":{}}]}`)
	return resting{}, cc.UpdateState(resolver.State{ServiceConfig: config})
}

type resting struct{}

// ResolveNow implements [resolver.Resolver].
func (resting) ResolveNow(resolver.ResolveNowOptions) {}

// Close implements [resolver.Resolver].
func (resting) Close() {}

// builder makes a balancer for each connection.
type builder struct{}

// Name implements [balancer.Builder].
func (builder) Name() string { return policy }

// Build implements [balancer.Builder].
func (builder) Build(cc balancer.ClientConn, _ balancer.BuildOptions) balancer.Balancer {
	return &fleet{cc: cc, conns: map[string]*conn{}}
}

// fleet is the connections to workers, by address. One is made when a call needs it, and dropped
// when it breaks, or could not be made for a while.
type fleet struct {
	cc balancer.ClientConn

	mu     sync.RWMutex
	conns  map[string]*conn
	closed bool
}

// conn is a connection to a worker. The lock of the fleet guards it.
type conn struct {
	sc    balancer.SubConn
	state connectivity.State
	err   error // of the last attempt to connect
}

// Pick implements [balancer.Picker]: the router, or a worker that has refused the call, has said
// where to send it.
func (f *fleet) Pick(info balancer.PickInfo) (balancer.PickResult, error) {
	a, _ := info.Ctx.Value(attemptKey{}).(*attempt)
	if a == nil {
		return balancer.PickResult{}, status.Error(codes.Internal, "the connection is not of shardgrpc.NewClient")
	}
	f.mu.RLock()
	c := f.conns[a.route.Address]
	var state connectivity.State
	var failed error
	if c != nil {
		state, failed = c.state, c.err
	}
	f.mu.RUnlock()
	switch {
	case c == nil:
		f.connect(a.route.Address)
	case state == connectivity.Ready:
		if a.pick() {
			return balancer.PickResult{SubConn: c.sc}, nil
		}
		// It ends with its context.
		return balancer.PickResult{}, balancer.ErrNoSubConnAvailable
	case state == connectivity.TransientFailure:
		return balancer.PickResult{}, status.Errorf(codes.Unavailable, "not sent: worker %s: %v", a.route.Address, failed)
	}
	a.waits()
	return balancer.PickResult{}, balancer.ErrNoSubConnAvailable
}

// connect begins to connect to a worker. The picker is updated when that has come to something.
func (f *fleet) connect(address string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.conns[address] != nil {
		return
	}
	c := &conn{state: connectivity.Connecting}
	// Without WithAuthority, TLS asks the worker to prove its own host name.
	at := []resolver.Address{{Addr: address, ServerName: address}}
	//nolint:staticcheck // one address is what will be supported
	sc, err := f.cc.NewSubConn(at, balancer.NewSubConnOptions{StateListener: func(s balancer.SubConnState) { f.changed(address, c, s) }})
	if err != nil {
		c.state, c.err = connectivity.TransientFailure, err
		return // the connection is about to be closed
	}
	c.sc = sc
	f.conns[address] = c
	sc.Connect()
}

// changed is called when a connection has changed its state.
func (f *fleet) changed(address string, c *conn, s balancer.SubConnState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c.state, c.err = s.ConnectivityState, s.ConnectionError
	// It has broken, or has failed and may be tried again: the next call makes another one.
	if c.state == connectivity.Idle && f.conns[address] == c {
		delete(f.conns, address)
		c.sc.Shutdown()
	}
	f.publish()
}

// publish has all calls that wait picked again. f.mu is held.
func (f *fleet) publish() {
	if f.closed {
		return
	}
	state := connectivity.Idle
	for _, c := range f.conns {
		if c.state == connectivity.Ready {
			state = connectivity.Ready
			break
		}
		if c.state == connectivity.Connecting {
			state = connectivity.Connecting
		}
	}
	f.cc.UpdateState(balancer.State{ConnectivityState: state, Picker: picker{f}})
}

// picker is the fleet as a value: gRPC has calls picked again when it gets one.
type picker struct{ *fleet }

// UpdateClientConnState implements [balancer.Balancer].
func (f *fleet) UpdateClientConnState(balancer.ClientConnState) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.publish()
	return nil
}

// ResolverError implements [balancer.Balancer]. There is none.
func (f *fleet) ResolverError(error) {}

// UpdateSubConnState implements [balancer.Balancer].
func (f *fleet) UpdateSubConnState(balancer.SubConn, balancer.SubConnState) {}

// ExitIdle implements [balancer.Balancer]: calls connect.
func (f *fleet) ExitIdle() {}

// Close implements [balancer.Balancer].
func (f *fleet) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for _, c := range f.conns {
		c.sc.Shutdown()
	}
}
