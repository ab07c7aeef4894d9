package consul

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/enginekit/batch"
	"github.com/leasehold/leasehold/internal/enginekit/watcher"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// The defaults of Options.
const (
	DefaultPrefix     = "leasehold"
	DefaultMaxQueries = 64
)

// Options of [New]. The zero value is ready for use. Datacenter and token are those of the client.
type Options struct {
	// Prefix is the folder of the records, DefaultPrefix when empty. All clients of the same
	// records name the same one.
	Prefix string

	// Namespace and Partition are Consul Enterprise's. Requests name them when they aren't empty.
	Namespace, Partition string

	// MaxQueries is how many blocking queries may run at once, DefaultMaxQueries when 0. Each holds
	// a connection, unless the client speaks HTTP/2, which it does over TLS.
	MaxQueries int
}

// Store is a store in Consul. It implements [store.Store], [store.Waiter], [store.Describer] and
// [driver.Inspector].
type Store struct {
	client *api.Client
	opts   Options
	prefix string // with a slash at its end
	clock  clock.Clock

	watches *watcher.Set[*watcher.Watch]
	slots   chan struct{} // one for each query that is under way
	writes  *batch.Groups[*write]

	mu   sync.Mutex                            // guards what follows
	long map[*watcher.Watch]context.CancelFunc // of queries that may take long
}

var (
	_ store.Store      = (*Store)(nil)
	_ store.Waiter     = (*Store)(nil)
	_ store.Describer  = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
)

// New returns a store over client, which stays the caller's. It does no I/O. It fails when the
// prefix can't be one.
func New(client *api.Client, opts Options) (*Store, error) {
	if client == nil {
		return nil, errors.New("consul: client is nil: want what api.NewClient returned")
	}
	if opts.Prefix == "" {
		opts.Prefix = DefaultPrefix
	}
	if opts.MaxQueries <= 0 {
		opts.MaxQueries = DefaultMaxQueries
	}
	prefix, err := checkPrefix(opts.Prefix)
	if err != nil {
		return nil, err
	}
	s := &Store{
		client: client, opts: opts, prefix: prefix, clock: clock.System(),
		slots: make(chan struct{}, opts.MaxQueries), long: map[*watcher.Watch]context.CancelFunc{},
	}
	s.writes = batch.New(2, s.together)
	s.watches = watcher.NewSet(context.Background(), watcher.Kind[*watcher.Watch]{
		Begin: begin, Serve: s.follow, Linger: linger, MaxIdle: maxIdle, Clock: s.clock,
	})
	return s, nil
}

// Close implements [store.Store]. Running calls continue, except Waits, and writes that wait to be
// sent with others. It blocks until the queries have ended, at once as a rule. It also blocks until
// the writes that were sent together are answered, or no caller waits for them.
func (s *Store) Close() error {
	s.watches.End()
	s.writes.Close()
	s.watches.Close()
	return nil
}

// ready returns why no operation may begin.
func (s *Store) ready(ctx context.Context) error { return s.watches.Ready(ctx) }

// query returns the options of a read.
func (s *Store) query(ctx context.Context, index uint64, wait time.Duration) *api.QueryOptions {
	q := &api.QueryOptions{
		RequireConsistent: true, WaitIndex: index, WaitTime: wait, Namespace: s.opts.Namespace, Partition: s.opts.Partition,
	}
	return q.WithContext(ctx)
}

// Properties implements [store.Describer].
func (s *Store) Properties() store.Properties {
	return store.Properties{
		Engine:      "consul",
		Consistency: "writes through Raft; reads of the consistent mode, for which the leader asks a majority",
		Fencing:     store.FencingLinearizable,
		Read:        store.ReadDurable,
		Settle:      store.SettledByRead,
		Push:        true,
		WaitLingers: true, // a blocking query keeps its connection, of which each client has 200
		// A refusal is a write and a read, where a Get is a read. But a name that isn't known is
		// new as a rule.
		CheapRefusal: true,
		OverHTTP:     true,
		Guarantee:    "one holder in one datacenter, as long as a majority of its servers keeps its disks; no server's clock matters",
	}
}
