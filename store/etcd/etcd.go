package etcd

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/enginekit/batch"
	"github.com/leasehold/leasehold/internal/enginekit/watcher"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// DefaultPrefix is the prefix of the keys in etcd unless [Options] name another one.
const DefaultPrefix = "leasehold/"

// maxPrefix bounds a prefix, in bytes.
const maxPrefix = 1024

// Options of [New]. The zero value is ready for use.
type Options struct {
	// Prefix is the prefix of the key of every record in etcd: [DefaultPrefix] if empty. Stores of
	// different prefixes know nothing of each other, provided that neither prefix begins with the
	// other. At most 1024 bytes of printable UTF-8.
	Prefix string
}

// Store keeps records in etcd. It implements [store.Store], [store.Waiter], [store.Describer] and
// [driver.Inspector].
type Store struct {
	client       *clientv3.Client
	prefix       string
	kv           clientv3.KV // tells how often a write was sent: see attempts
	writes       *batch.Groups[*write]
	watcher      clientv3.Watcher // of its own: closing it leaves the caller's watches alone
	closeWatcher func() error     // once

	notices bool // that a connection died in silence

	watches *watcher.Set[*watcher.Watch] // a watch in etcd for each key
}

var (
	_ store.Store      = (*Store)(nil)
	_ store.Waiter     = (*Store)(nil)
	_ store.Describer  = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
)

// New returns a store on the caller's client, which Close leaves open. It does no I/O. It fails for
// an invalid prefix, and when client.KV is wrapped (by the packages namespace, leasing or
// ordering), because the store would bypass the wrapper.
//
// Give the client a DialKeepAliveTime (10 s) and a DialKeepAliveTimeout (5 s). Without them a
// connection that dies in silence is noticed after a quarter of an hour, and nothing gets through
// until then. If their sum is a minute at most, the store has CheapWait among its Properties. Then
// waiters for a name follow its holder by a watch, and learn of a death sooner.
func New(client *clientv3.Client, opts Options) (*Store, error) {
	if client == nil {
		return nil, errors.New("etcd: client is nil: want one from clientv3.New")
	}
	if plain := clientv3.NewKV(client); reflect.TypeOf(client.KV) != reflect.TypeOf(plain) {
		return nil, fmt.Errorf("etcd: client.KV is a %T, a wrapper: give the store a plain client, and a namespace as Options.Prefix", client.KV)
	}
	prefix := opts.Prefix
	if prefix == "" {
		prefix = DefaultPrefix
	}
	if err := checkPrefix(prefix); err != nil {
		return nil, err
	}
	s := &Store{
		client: client, prefix: prefix,
		kv:      clientv3.NewKVFromKVClient(observed{clientv3.RetryKVClient(client)}, client),
		watcher: clientv3.NewWatcher(client),
		notices: noticesSilence(client),
	}
	s.closeWatcher = sync.OnceValue(s.watcher.Close)
	s.writes = batch.New(1, s.together)
	// Without a leader a member can't tell what happens elsewhere: it ends such a watch instead of
	// leaving it silent.
	s.watches = watcher.NewSet(clientv3.WithRequireLeader(context.Background()), watcher.Kind[*watcher.Watch]{
		Begin: watcher.Begin, Serve: s.serve, Linger: linger, MaxIdle: maxIdle, Clock: clock.System(),
	})
	return s, nil
}

func checkPrefix(prefix string) error {
	if len(prefix) > maxPrefix {
		return fmt.Errorf("etcd: a prefix of %d bytes: want at most %d", len(prefix), maxPrefix)
	}
	if !utf8.ValidString(prefix) {
		return fmt.Errorf("etcd: prefix %q: want valid UTF-8", prefix)
	}
	for _, r := range prefix {
		if !unicode.IsPrint(r) {
			return fmt.Errorf("etcd: prefix %q: want printable characters only, not %q", prefix, r)
		}
	}
	return nil
}

// Properties implements [store.Describer].
func (s *Store) Properties() store.Properties {
	return store.Properties{
		Engine:      "etcd",
		Consistency: "linearizable reads; every write one transaction, conditional on the key's mod revision",
		Fencing:     store.FencingLinearizable,
		Read:        store.ReadDurable,
		Settle:      store.SettledByRead,
		Push:        true,
		Guarantee:   "exclusive, and tokens rise, as long as a majority of the members keeps its disks",

		CheapRefusal: true,
		CheapWait:    s.notices,
	}
}

// noticesSilence reports whether the client gives up a connection that died in silence within a
// minute. The client shows its configuration to nobody; where the fields aren't found, the answer
// is no.
func noticesSilence(client *clientv3.Client) bool {
	const grpcTimeout = 20 * time.Second // for a DialKeepAliveTimeout of 0
	cfg := reflect.Indirect(reflect.Indirect(reflect.ValueOf(client)).FieldByName("cfg"))
	if cfg.Kind() != reflect.Struct {
		return false
	}
	every, timeout := cfg.FieldByName("DialKeepAliveTime"), cfg.FieldByName("DialKeepAliveTimeout")
	if !every.CanInt() || !timeout.CanInt() || every.Int() <= 0 {
		return false
	}
	within := time.Duration(timeout.Int())
	if within <= 0 {
		within = grpcTimeout
	}
	return time.Duration(every.Int()) <= time.Minute-within
}

// Close implements [store.Store]. The client stays open. Running calls other than Wait end as they
// would have.
func (s *Store) Close() error {
	s.watches.End()
	err := s.closeWatcher()
	s.writes.Close()
	s.watches.Close()
	return err
}
