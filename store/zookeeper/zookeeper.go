package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/enginekit/batch"
	"github.com/leasehold/leasehold/internal/enginekit/watcher"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// DefaultRoot is the root of a store whose Options name none.
const DefaultRoot = "/leasehold"

// Options of [New]. The zero value is ready for use.
type Options struct {
	// Root is the znode above the records, DefaultRoot when empty. It is created with the first
	// record, and its parents, too. All clients of the same records name the same root.
	Root string

	// ACL is the access control list of new znodes. When nil, any client that reaches the server
	// may read and write them. For an account that conn.AddAuth was called with,
	// zk.AuthACL(zk.PermAll) keeps all others out.
	ACL []zk.ACL
}

// Store is a store in ZooKeeper. It implements [store.Store], [store.Waiter], [store.Describer] and
// [driver.Inspector].
type Store struct {
	conn  *zk.Conn
	root  string
	acl   []zk.ACL
	clock clock.Clock
	last  int32 // the highest version that is written on top of

	writes *batch.Groups[*write]

	watches *watcher.Set[*watcher.Watch]

	mu      sync.Mutex // guards what follows
	closed  bool
	running sync.WaitGroup // requests under way; none is added once closed is set
}

var (
	_ store.Store      = (*Store)(nil)
	_ store.Waiter     = (*Store)(nil)
	_ store.Describer  = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
)

// New returns a store over conn, which stays the caller's: close it after the store. It does no
// I/O. It fails when the root is not the name of a znode.
func New(conn *zk.Conn, opts Options) (*Store, error) {
	if conn == nil {
		return nil, errors.New("zookeeper: conn is nil: want what zk.Connect returned")
	}
	root := opts.Root
	if root == "" {
		root = DefaultRoot
	}
	if err := checkRoot(root); err != nil {
		return nil, err
	}
	acl := opts.ACL
	if acl == nil {
		acl = zk.WorldACL(zk.PermAll)
	}
	s := &Store{conn: conn, root: root, acl: acl, clock: clock.System(), last: math.MaxInt32 - 1}
	s.writes = batch.New(2, s.together)
	s.watches = watcher.NewSet(context.Background(), watcher.Kind[*watcher.Watch]{
		Begin: watcher.Begin, Serve: s.follow, Linger: watcher.Forever, MaxIdle: math.MaxInt, Clock: s.clock,
	})
	return s, nil
}

// closeWait is how long Close waits for requests that the server has not answered.
const closeWait = 5 * time.Second

// Close implements [store.Store]. It blocks until running requests have ended. When the server
// doesn't answer them within 5 s it returns an error. They end when the connection breaks, or is
// closed by its owner.
func (s *Store) Close() error {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	s.mu.Unlock()
	if !first {
		return nil
	}
	s.watches.End()
	ended := make(chan struct{})
	go func() {
		s.writes.Close()
		s.watches.Close()
		s.running.Wait()
		close(ended)
	}()
	timer := clock.NewTimer(s.clock, closeWait)
	defer timer.Stop()
	select {
	case <-ended:
		return nil
	case <-timer.C:
		return fmt.Errorf("zookeeper: closed, but %s has not answered every request for %v: they end when the connection is closed", s.conn.Server(), closeWait)
	}
}

// Properties implements [store.Describer].
func (s *Store) Properties() store.Properties {
	return store.Properties{
		Engine:      "zookeeper",
		Consistency: "writes by quorum; reads in the session of a quorum round before them",
		Fencing:     store.FencingLinearizable,
		Read:        store.ReadDurable,
		Settle:      store.SettledByRead,
		Push:        true,
		// A refusal is a write and a read, and so is a Get.
		CheapRefusal: true,
		Guarantee:    "one holder, as long as a majority of the servers keeps its disks; no server's clock matters",
	}
}
