package lease_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ttl is that of every node unless a test says otherwise, and validity what a holder counts on by default.
const (
	ttl      = 15 * time.Second
	validity = 12 * time.Second
)

var errRefused = errors.New("connection refused")

// inWorld runs f in virtual time, in a world of its own.
func inWorld(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newWorld(t)) })
}

// world is one database and the nodes that contend for names in it. After every write that lands, and after every
// acquisition, it checks what has to hold whatever a test does.
type world struct {
	t       *testing.T
	clk     *clocktest.Clock // of the store's machine
	db      *memory.DB
	ageless bool // the store vouches for no Age
	unsafe  bool // the test lets two hold at once, on purpose
	nodes   int

	mu      sync.Mutex
	rows    map[string]store.Record // as last written
	highest map[string]fence.Token
	terms   map[string][]held // by key: what was acquired here
}

type held struct {
	l    *lease.Lease
	node *node
}

func newWorld(t *testing.T) *world {
	clk := clocktest.New(0)
	return &world{
		t: t, clk: clk, db: memory.NewDB(memory.Options{Clock: clk}),
		rows: map[string]store.Record{}, highest: map[string]fence.Token{}, terms: map[string][]held{},
	}
}

// node is one process: its clock, its connection to the store, its manager.
type node struct {
	*lease.Manager
	w      *world
	clk    *clocktest.Clock
	net    *faulty.Store
	outage *faulty.Outage
}

// node starts a process. Its manager is closed, and its connection after it, when the test is over.
func (w *world) node(o lease.Options) *node {
	w.t.Helper()
	w.nodes++
	n := &node{w: w, clk: clocktest.New(clock.Instant(w.nodes) * 1e12), outage: &faulty.Outage{}}
	n.net = faulty.Wrap(&ledger{Store: w.db.Open(), w: w}, n.outage.Plan(nil))
	o.Clock = n.clk
	m, err := lease.NewManager(n.net, o)
	if err != nil {
		w.t.Fatal(err)
	}
	n.Manager = m
	w.t.Cleanup(func() {
		n.clk.Resume()
		_ = m.Close()
		_ = n.net.Close()
	})
	return n
}

// plan sets what happens to the node's operations from now on, outages apart.
func (n *node) plan(p faulty.Plan) { n.net.SetPlan(n.outage.Plan(p)) }

// once returns a plan by which fault happens to the first operation that match picks, and none to the others.
func once(fault faulty.Fault, match func(faulty.Op) bool) faulty.Plan {
	var done sync.Once
	return func(op faulty.Op) (f faulty.Fault) {
		if match(op) {
			done.Do(func() { f = fault })
		}
		return f
	}
}

func kind(k faulty.Kind) func(faulty.Op) bool {
	return func(op faulty.Op) bool { return op.Kind == k }
}

// claims picks the writes that take key, frees those that free it.
func claims(key string) func(faulty.Op) bool {
	return func(op faulty.Op) bool { return op.Kind == faulty.Put && op.Key == key && op.Record.Owner != "" }
}

func frees(key string) func(faulty.Op) bool {
	return func(op faulty.Op) bool { return op.Kind == faulty.Put && op.Key == key && op.Record.Owner == "" }
}

// acquire is Acquire of a name that has to be had within 5 TTLs.
func (n *node) acquire(key string) *lease.Lease {
	n.w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*ttl)
	defer cancel()
	l, err := n.Acquire(ctx, key)
	if err != nil {
		n.w.t.Fatalf("Acquire(%s): %v", key, err)
	}
	n.w.acquired(n, l)
	return l
}

func (n *node) open() *lease.Session {
	n.w.t.Helper()
	s, err := n.OpenSession(context.Background())
	if err != nil {
		n.w.t.Fatalf("OpenSession: %v", err)
	}
	return s
}

// under is Acquire of a name that the session keeps.
func (n *node) under(s *lease.Session, key string) *lease.Lease {
	n.w.t.Helper()
	l, err := s.Acquire(context.Background(), key)
	if err != nil {
		n.w.t.Fatalf("Acquire(%s) under a session: %v", key, err)
	}
	n.w.acquired(n, l)
	return l
}

func (w *world) acquired(n *node, l *lease.Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.terms[l.Name()] = append(w.terms[l.Name()], held{l, n})
	w.exclusive()
}

// exclusive checks that no name has two valid holders. w.mu is held.
func (w *world) exclusive() {
	if w.unsafe {
		return
	}
	for key, terms := range w.terms {
		var valid []string
		for _, h := range terms {
			if h.l.Left() > 0 {
				valid = append(valid, fmt.Sprint(h.l.Holder(), " ", h.l.Token()))
			}
		}
		if len(valid) > 1 {
			w.t.Errorf("%s has %d valid holders: %s", key, len(valid), strings.Join(valid, ", "))
		}
	}
}

// get reads a record past all networks.
func (w *world) get(key string) store.Record {
	w.t.Helper()
	rec, err := store.Load(context.Background(), w.db.Open(), key)
	if err != nil {
		w.t.Fatal(err)
	}
	return rec
}

// wipe deletes a record past all networks, as the loss of the store's data does. The tokens have to rise all the same.
func (w *world) wipe(key string) {
	w.t.Helper()
	if err := w.db.Open().Delete(context.Background(), key, w.get(key).Version); err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.rows, key)
}

// restore puts an older version of a record back, as a backup does.
func (w *world) restore(rec store.Record) {
	w.t.Helper()
	rec.Version = w.get(rec.Key).Version
	if _, err := w.db.Open().Put(context.Background(), rec); err != nil {
		w.t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rows[rec.Key] = rec
}

// resource is what a lease guards: it admits by token, and by nothing else.
type resource struct {
	t    *testing.T
	mark fence.Mark
}

// write is a request under the token of l.
func (r *resource) write(l *lease.Lease) error {
	mark, err := r.mark.Admit(l.Name(), l.Holder(), l.Token())
	r.mark = mark
	return err
}

func (r *resource) admits(l *lease.Lease) {
	r.t.Helper()
	if err := r.write(l); err != nil {
		r.t.Errorf("the resource refuses %s of %s: %v", l, l.Holder(), err)
	}
}

func (r *resource) refuses(l *lease.Lease) {
	r.t.Helper()
	if err := r.write(l); !errors.Is(err, fence.ErrStale) {
		r.t.Errorf("the resource admits %s of %s: %v", l, l.Holder(), err)
	}
}

// ledger checks what lands in the database.
type ledger struct {
	store.Store
	w *world
}

// Put implements [store.Store].
func (s *ledger) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	got, err := s.Store.Put(ctx, rec)
	if err == nil {
		s.w.landed(rec)
	}
	return s.w.vouch(got), s.w.vouchIn(err)
}

// landed checks a write that has just been done. w.mu is held.
func (w *world) landed(rec store.Record) {
	prev, high := w.rows[rec.Key], w.highest[rec.Key]
	renewal := prev.Owner == rec.Owner && prev.Token == rec.Token
	switch {
	case rec.Token < high:
		w.t.Errorf("%s: token lowered from %d to %d", rec.Key, high, rec.Token)
	case rec.Owner != "" && rec.Token == high && !renewal:
		w.t.Errorf("%s: %s took it under token %d, which has been used", rec.Key, rec.Owner, rec.Token)
	}
	w.rows[rec.Key], w.highest[rec.Key] = rec, rec.Token
	w.exclusive()
}

// Get implements [store.Store].
func (s *ledger) Get(ctx context.Context, key string) (store.Record, error) {
	rec, err := s.Store.Get(ctx, key)
	return s.w.vouch(rec), err
}

// Wait implements [store.Waiter].
func (s *ledger) Wait(ctx context.Context, key, version string) (store.Record, error) {
	rec, err := store.Wait(ctx, s.Store, key, version)
	return s.w.vouch(rec), err
}

func (w *world) vouch(rec store.Record) store.Record {
	if w.ageless {
		rec.Age = 0
	}
	return rec
}

func (w *world) vouchIn(err error) error {
	var conflict *store.ConflictError
	if errors.As(err, &conflict) {
		return &store.ConflictError{Current: w.vouch(conflict.Current)}
	}
	return err
}

// lostWith fails unless l is lost for that cause, by Check, by its context and for good.
func lostWith(t *testing.T, l *lease.Lease, cause lease.Cause) {
	t.Helper()
	synctest.Wait()
	var byCheck, byContext *lease.LostError
	if err := l.Check(); !errors.As(err, &byCheck) || byCheck.Cause != cause {
		t.Errorf("Check: %v, want a loss by %q", err, cause)
	}
	if err := context.Cause(l.Context()); !errors.As(err, &byContext) || byContext.Cause != cause {
		t.Errorf("the context's cause: %v, want a loss by %q", err, cause)
	}
	if l.Left() != 0 || l.ValidUntil() != clock.Ended {
		t.Errorf("%v left until %v after the loss", l.Left(), l.ValidUntil())
	}
}

// valid fails unless l may be relied on.
func valid(t *testing.T, l *lease.Lease) {
	t.Helper()
	if err := l.Check(); err != nil || l.Context().Err() != nil || l.Left() <= 0 {
		t.Errorf("%s: Check %v, context %v, %v left; want it valid", l, err, l.Context().Err(), l.Left())
	}
}

func release(t *testing.T, l *lease.Lease) {
	t.Helper()
	if err := l.Release(context.Background()); err != nil {
		t.Errorf("Release %s: %v", l, err)
	}
}

// acquisition is an Acquire that runs in the background.
type acquisition struct {
	l    *lease.Lease
	err  error
	at   time.Time
	done chan struct{}
}

func (n *node) acquiring(ctx context.Context, key string) *acquisition {
	a := &acquisition{done: make(chan struct{})}
	go func() {
		defer close(a.done)
		a.l, a.err = n.Acquire(ctx, key)
		a.at = time.Now()
		if a.err == nil {
			n.w.acquired(n, a.l)
		}
	}()
	synctest.Wait()
	return a
}

// wait returns the lease, which has to come within limit of start.
func (a *acquisition) wait(t *testing.T, start time.Time, limit time.Duration) *lease.Lease {
	t.Helper()
	<-a.done
	if a.err != nil {
		t.Fatalf("Acquire: %v", a.err)
	}
	if d := a.at.Sub(start); d > limit {
		t.Errorf("acquired after %v, want %v at most", d, limit)
	}
	return a.l
}

// pending fails if the acquisition is over already.
func (a *acquisition) pending(t *testing.T) {
	t.Helper()
	synctest.Wait()
	select {
	case <-a.done:
		t.Errorf("Acquire has returned %v, %v; want it waiting", a.l, a.err)
	default:
	}
}
