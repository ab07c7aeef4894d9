package nats

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/enginekit/watcher"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Options of [Open]. The zero value is ready for use.
type Options struct {
	// SyncAlways says that every server of the bucket runs with sync_interval: always in its
	// jetstream block, so that what is acknowledged is on a disk. Servers don't report that setting
	// to a client. The store claims [store.FencingLinearizable] only then, and in a bucket that is
	// kept in files and whose persist mode isn't async.
	SyncAlways bool
}

// Store keeps records in a bucket. It implements [store.Store], [store.Waiter], [store.Describer]
// and [driver.Inspector].
type Store struct {
	conn   *natsgo.Conn
	js     jetstream.JetStream
	kv     jetstream.KeyValue
	stream jetstream.Stream
	name   string                                 // of the bucket's stream
	config atomic.Pointer[jetstream.StreamConfig] // of that, when it was looked at last
	api    string                                 // begins the subjects of JetStream's API
	opts   Options

	watches *watcher.Set[*watch]
	feeds   *watcher.Set[*feed] // by filter

	mu  sync.Mutex    // guards what follows
	due clock.Instant // when to look at the bucket again
}

var (
	_ store.Store      = (*Store)(nil)
	_ store.Waiter     = (*Store)(nil)
	_ store.Describer  = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
)

// Open returns a store on a bucket, through the caller's connection, which Close leaves open. It
// asks the server for the bucket's settings. It fails when there is no bucket, or one that would
// lose records: see [Create] for one that fits. It blocks until the server has answered, for 5 s at
// most, or until ctx is done.
//
// Give the connection MaxReconnects(-1): otherwise it gives up for good after two minutes without a
// server.
func Open(ctx context.Context, js jetstream.JetStream, bucket string, opts Options) (*Store, error) {
	if js == nil {
		return nil, errors.New("nats: the JetStream context is nil: want one from jetstream.New")
	}
	s := &Store{conn: js.Conn(), js: js, api: apiPrefix(js.Options()), opts: opts}
	err := s.bounded(ctx, func(ctx context.Context) (err error) {
		if s.kv, err = js.KeyValue(ctx, bucket); err != nil {
			return err
		}
		s.stream, err = js.Stream(ctx, "KV_"+bucket)
		return err
	})
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return nil, fmt.Errorf("bucket %q: %w: make it: nats kv add %s --history=1 --replicas=3", bucket, err, bucket)
	}
	if err != nil {
		return nil, fmt.Errorf("bucket %q: %w", bucket, Explain(err))
	}
	config := s.stream.CachedInfo().Config
	if err := checkConfig(config); err != nil {
		return nil, fmt.Errorf("bucket %q: %w", bucket, err)
	}
	s.name = config.Name
	s.saw(config)
	s.feeds = watcher.NewSet(context.Background(), watcher.Kind[*feed]{Begin: newFeed, Serve: s.serve, Clock: clock.System()})
	s.watches = watcher.NewSet(context.Background(), watcher.Kind[*watch]{Begin: s.begin, End: func(w *watch) { w.leave() }, Clock: clock.System()})
	return s, nil
}

// Create creates a bucket for [Open], kept in files by that many servers, 1 to 5. With 3, one may
// fail. It does nothing when there is a bucket with the same settings, and fails when there is one
// with others. It blocks like Open.
func Create(ctx context.Context, js jetstream.JetStream, bucket string, replicas int) error {
	if replicas < 1 || replicas > 5 {
		return fmt.Errorf("bucket %q: %d replicas: want 1 to 5, and an odd number", bucket, replicas)
	}
	s := &Store{conn: js.Conn(), js: js}
	err := s.bounded(ctx, func(ctx context.Context) error {
		_, err := js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: bucket, Description: "Leasehold's records", History: 1, Storage: jetstream.FileStorage, Replicas: replicas,
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("bucket %q can't be made: %w", bucket, Explain(err))
	}
	return nil
}

// apiPrefix returns what begins the subjects of JetStream's API.
func apiPrefix(opts jetstream.JetStreamOptions) string {
	switch {
	case opts.Domain != "":
		return "$JS." + opts.Domain + ".API."
	case opts.APIPrefix == "":
		return jetstream.DefaultAPIPrefix
	case opts.APIPrefix[len(opts.APIPrefix)-1] == '.':
		return opts.APIPrefix
	}
	return opts.APIPrefix + "."
}

// checkConfig refuses a bucket that loses records, or whose reads are another bucket's past.
func checkConfig(c jetstream.StreamConfig) error {
	switch {
	case c.MaxAge > 0:
		return fmt.Errorf("it forgets records after %v, and with them their tokens: make one without a TTL", c.MaxAge)
	case c.Mirror != nil || len(c.Sources) > 0:
		return errors.New("it copies another bucket, and lags behind it: name the bucket that it copies")
	case c.Discard != jetstream.DiscardNew:
		return errors.New("it throws old records away when it is full: set its stream's discard policy to new")
	case c.Sealed:
		return errors.New("it is sealed, so nothing can be written: make another one")
	}
	return nil
}

// answerWithin bounds each request: what a broken connection lost is never answered.
const answerWithin = 5 * time.Second

// errNoAnswer is the error of a request that wasn't answered in time.
var errNoAnswer = fmt.Errorf("no answer from the server within %v", answerWithin)

// bounded calls do with a context that ends after answerWithin at the latest. It returns the cause
// of ctx where that ended, and errNoAnswer where the time was over.
func (s *Store) bounded(ctx context.Context, do func(context.Context) error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	limited, cancel := clock.WithTimeout(ctx, clock.System(), answerWithin)
	defer cancel()
	err := do(limited)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, natsgo.ErrTimeout):
		if last := s.conn.LastError(); last != nil && errors.Is(last, natsgo.ErrPermissionViolation) {
			return fmt.Errorf("%w; the latest complaint of the server was: %w", errNoAnswer, last)
		}
		if status := s.conn.Status(); status != natsgo.CONNECTED {
			return fmt.Errorf("%w: the connection is %s", errNoAnswer, status)
		}
		return errNoAnswer
	}
	return err
}

// ready returns why no operation may begin: the store was closed, or ctx is done.
func (s *Store) ready(ctx context.Context) error { return s.feeds.Ready(ctx) }

// synced reports whether what a bucket acknowledges is on a disk.
func (o Options) synced(c jetstream.StreamConfig) bool {
	return o.SyncAlways && c.Storage == jetstream.FileStorage && c.PersistMode == jetstream.DefaultPersistMode
}

// Properties implements [store.Describer]. The store looks at what they depend on every 30 s while
// it is written, waited on or Properties is called. A call that starts such a look doesn't wait for
// it; later calls have its result.
func (s *Store) Properties() store.Properties {
	s.lookAgain()
	p := store.Properties{
		Engine:      "nats",
		Consistency: "reads by the stream's leader; every write conditional on the subject's last sequence",
		Fencing:     store.FencingPerPrimary,
		Read:        store.ReadLeader,
		Settle:      store.SettledByRead,
		Push:        true,
		Guarantee:   "exclusive until a server's machine fails: JetStream acknowledges before it syncs, so writes may be lost then",
	}
	if s.opts.synced(*s.config.Load()) {
		p.Fencing = store.FencingLinearizable
		p.Guarantee = "exclusive, and tokens rise, as long as a majority of the replicas keeps its disks"
	}
	return p
}

// Close implements [store.Store]. The connection stays open. Running calls other than Wait end as
// they would have.
func (s *Store) Close() error {
	s.watches.Close()
	s.feeds.Close()
	return nil
}
