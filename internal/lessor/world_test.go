package lessor

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ttl      = 15 * time.Second
	validity = 12 * time.Second
)

// world is a database with registries on it, in virtual time.
type world struct {
	t       *testing.T
	clk     *clocktest.Clock
	db      *memory.DB
	ageless bool

	mu      sync.Mutex
	writes  int
	highest map[string]fence.Token
	onQueue func(key string, waiting int)
}

func inWorld(t *testing.T, f func(*testing.T, *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		clk := clocktest.New(0)
		f(t, &world{t: t, clk: clk, db: memory.NewDB(memory.Options{Clock: clk}), highest: map[string]fence.Token{}})
	})
}

// ledger counts what lands, and sees that tokens never fall.
type ledger struct {
	*memory.Store
	w *world
}

func (l ledger) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	l.w.mu.Lock()
	defer l.w.mu.Unlock()
	got, err := l.Store.Put(ctx, rec)
	if err == nil {
		l.w.writes++
		if rec.Token < l.w.highest[rec.Key] {
			l.w.t.Errorf("%s: token %d after %d", rec.Key, rec.Token, l.w.highest[rec.Key])
		}
		l.w.highest[rec.Key] = rec.Token
	}
	return got, err
}

func (w *world) written() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes
}

// registry opens one more, behind a network of its own.
func (w *world) registry() (*Registry, *faulty.Store) {
	st := store.Store(ledger{w.db.Open(), w})
	if w.ageless {
		st = faulty.Ageless(st)
	}
	net := faulty.Wrap(st, nil)
	r := New(net, Options{Clock: w.clk, OnQueue: w.onQueue})
	w.t.Cleanup(func() {
		_ = r.Close()
		_ = net.Close()
	})
	return r, net
}

func (w *world) get(key string) store.Record {
	w.t.Helper()
	rec, err := store.Load(context.Background(), w.db.Open(), key)
	if err != nil {
		w.t.Fatal(err)
	}
	return rec
}

func wants(owner string, wait time.Duration) Request {
	return Request{Key: "job", Owner: owner, TTL: ttl, Wait: wait}
}

// request is an Acquire under way.
type request struct {
	grant  Grant
	err    error
	at     time.Time
	done   chan struct{}
	cancel context.CancelFunc
}

func send(r *Registry, req Request) *request {
	ctx, cancel := context.WithCancel(context.Background())
	q := &request{done: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(q.done)
		defer cancel()
		q.grant, q.err = r.Acquire(ctx, req)
		q.at = time.Now()
	}()
	synctest.Wait()
	return q
}

func (q *request) over() bool {
	synctest.Wait()
	select {
	case <-q.done:
		return true
	default:
		return false
	}
}

func granted(t *testing.T, r *Registry, req Request) store.Record {
	t.Helper()
	g, err := r.Acquire(context.Background(), req)
	if err != nil {
		t.Fatalf("Acquire for %s: %v", req.Owner, err)
	}
	if g.Record.Owner != req.Owner || g.Record.Token == 0 {
		t.Fatalf("granted to %s: %+v", req.Owner, g.Record)
	}
	return g.Record
}

func released(t *testing.T, r *Registry, rec store.Record) {
	t.Helper()
	if _, err := r.Release(context.Background(), rec.Key, rec.Owner, rec.Token, "released", nil); err != nil {
		t.Fatalf("Release by %s: %v", rec.Owner, err)
	}
}

func heldBy(t *testing.T, err error, owner string) {
	t.Helper()
	var held *lease.HeldError
	if !errors.As(err, &held) || held.Holder != owner {
		t.Errorf("error %v, want held by %s", err, owner)
	}
}

func once(f faulty.Fault, match func(faulty.Op) bool) faulty.Plan {
	var done sync.Once
	return func(op faulty.Op) (got faulty.Fault) {
		if match(op) {
			done.Do(func() { got = f })
		}
		return got
	}
}

func puts(owner string) func(faulty.Op) bool {
	return func(op faulty.Op) bool { return op.Kind == faulty.Put && op.Record.Owner == owner }
}

func names(n int) (owners []string) {
	for i := range n {
		owners = append(owners, fmt.Sprintf("holder-%02d", i))
	}
	return owners
}
