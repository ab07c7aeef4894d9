package redis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/leasehold/leasehold/internal/enginekit/batch"
	"github.com/leasehold/leasehold/internal/enginekit/notify"
	"github.com/leasehold/leasehold/internal/enginekit/outcome"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Client is what the engine asks of a client. *redis.Client, *redis.ClusterClient and *redis.Ring
// of go-redis have it.
type Client interface {
	Process(ctx context.Context, cmd goredis.Cmder) error
	Pipelined(ctx context.Context, fn func(goredis.Pipeliner) error) ([]goredis.Cmder, error)
}

// Subscriber is the part of a client that reports changes. Without it Waits poll.
type Subscriber interface {
	Subscribe(ctx context.Context, channels ...string) *goredis.PubSub
}

// DefaultPrefix is the prefix when [Options] have none.
const DefaultPrefix = "leasehold:"

// DefaultReplicaWait is the wait when [Options] have none.
const DefaultReplicaWait = time.Second

// Options of [New]. The zero value is ready for use.
type Options struct {
	Prefix string // of keys and of channels; DefaultPrefix when ""

	// ClockStep enables Age, when above 0. It is an upper bound on how far the wall clock of the
	// server is ever set, and on how far those of a primary and of a replica that replaces it
	// differ. Ages are too small by that bound. One that would be below 0 is 0.
	ClockStep time.Duration

	// Replicas is how many replicas have to acknowledge a write before it counts as done, within
	// ReplicaWait. When fewer do, its outcome is unknown: it is on the primary. So it stays for
	// this handle, whatever a read shows, until as many replicas have acknowledged a later write. 0
	// asks none. ReplicaWait has to be shorter than the client's ReadTimeout.
	Replicas    int
	ReplicaWait time.Duration // DefaultReplicaWait when 0

	// NoNotify leaves PUBLISH out of the writes of this handle, and its Waits poll.
	NoNotify bool
}

// Store is a store in Redis. It implements [store.Store], [store.Waiter], [store.Describer] and
// [driver.Inspector].
type Store struct {
	client Client
	opts   Options
	// On which older processes tell of changes, and the beginning of those on which this one does;
	// "" without.
	channel string
	waiters *notify.Waiters
	writes  *batch.Groups[*write]
	doubts  outcome.Writes // with Replicas

	mu      sync.Mutex
	isDone  bool
	closed  chan struct{}
	running sync.WaitGroup // calls of the client, also those that nobody waits for any more
}

var (
	_ store.Store      = (*Store)(nil)
	_ store.Waiter     = (*Store)(nil)
	_ store.Describer  = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
)

// New returns a store that uses the client, which stays the caller's. It does no I/O.
func New(client Client, opts Options) (*Store, error) {
	if opts.Prefix == "" {
		opts.Prefix = DefaultPrefix
	}
	if opts.ReplicaWait == 0 {
		opts.ReplicaWait = DefaultReplicaWait
	}
	switch {
	case client == nil:
		return nil, errors.New("client is nil: want a client of go-redis")
	case driver.CheckPrefix(opts.Prefix) != nil:
		return nil, fmt.Errorf("prefix %q: want at most %d bytes of printable UTF-8", opts.Prefix, store.MaxKey)
	case opts.ClockStep < 0:
		return nil, fmt.Errorf("ClockStep %v: want a bound above 0, or 0 for no Age", opts.ClockStep)
	case opts.Replicas < 0:
		return nil, fmt.Errorf("replicas %d: want 0 or more", opts.Replicas)
	case opts.ReplicaWait < time.Millisecond:
		return nil, fmt.Errorf("ReplicaWait %v: want 1ms or more", opts.ReplicaWait)
	}
	s := &Store{client: client, opts: opts, closed: make(chan struct{})}
	if _, ok := client.(Subscriber); ok && !opts.NoNotify {
		s.channel = opts.Prefix + "changed"
	}
	s.waiters, s.writes = notify.New(source{s}), batch.New(1, s.together)
	return s, nil
}

// Properties implements [store.Describer].
func (s *Store) Properties() store.Properties {
	p := store.Properties{
		Engine:       "redis",
		Consistency:  "linearizable while one primary lives: each operation is one script on it",
		Fencing:      store.FencingPerPrimary,
		Read:         store.ReadLeader,
		Settle:       store.SettledByRead,
		Push:         s.channel != "",
		Age:          s.opts.ClockStep > 0,
		CheapRefusal: true,
		Guarantee:    "while one primary lives; a failover may lose the last writes, and so may a crash unless appendfsync is always",
	}
	if n := s.opts.Replicas; n > 0 {
		p.Settle = store.SettledByWrite
		p.Guarantee = fmt.Sprintf("while one primary lives, or one of the %d replicas that acknowledged the last write replaces it", n)
	}
	return p
}

// Close implements [store.Store]. It leaves the client open, and waits for calls that were left
// behind, at most for the client's time-outs.
func (s *Store) Close() error {
	s.mu.Lock()
	if !s.isDone {
		s.isDone = true
		close(s.closed)
	}
	s.mu.Unlock()
	s.waiters.Close()
	s.writes.Close()
	s.running.Wait()
	return nil
}

// begin returns why no call may begin, or counts it among those that Close waits for.
func (s *Store) begin(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isDone {
		return store.ErrClosed
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	s.running.Add(1)
	return nil
}
