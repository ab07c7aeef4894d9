package drill

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/store"
)

// The orders that an instance of a rehearsal reads, a line each.
const (
	orderHang   = "hang"   // requests to the store get no answer
	orderRefuse = "refuse" // they fail at once
	orderMend   = "mend"
)

// Instance is one instance of a rehearsal: a process that starts, holds its lease through a store
// that can be cut, and accepts writes while it is active.
type Instance struct {
	// The checker, on the store that wrap returns.
	New func(wrap func(store.Store) store.Store) (admiral.StateChecker, error)
	// orders; its end ends the instance.
	In io.Reader
	// The address, then one line for each order.
	Out io.Writer
}

// writePath is where an instance of a rehearsal accepts writes.
const writePath = "/write"

// Run runs the instance until ctx is done, or In ends.
func (i Instance) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	cut := &cuttable{changed: make(chan struct{})}
	checker, err := i.New(func(st store.Store) store.Store { return &throughCut{st, cut} })
	if err != nil {
		return err
	}
	state := admiral.NewState(nil)
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	const headerTimeout = 5 * time.Second
	server := &http.Server{Handler: writes(state), ReadHeaderTimeout: headerTimeout}
	var own sync.WaitGroup
	own.Go(func() { _ = server.Serve(l) }) // until Close
	defer own.Wait()
	defer func() { _ = server.Close() }()
	if _, err := fmt.Fprintf(i.Out, "http://%s%s\n", l.Addr(), writePath); err != nil {
		return err
	}
	go func() { // it ends with In, which is the process's own
		defer stop()
		for lines := bufio.NewScanner(i.In); lines.Scan(); {
			cut.set(lines.Text())
			if _, err := fmt.Fprintln(i.Out, "done"); err != nil {
				return
			}
		}
	}()
	return checker.Run(ctx, state)
}

// writes accepts a write while the instance is active, and names its term.
func writes(state *admiral.State) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		term, err := state.Guard(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set(TokenHeader, term.Token().String())
		w.WriteHeader(http.StatusNoContent)
	})
}

// cuttable says what becomes of requests to a store.
type cuttable struct {
	mu      sync.Mutex
	order   string
	changed chan struct{} // closed at the next change
}

func (c *cuttable) set(order string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.order = order
	close(c.changed)
	c.changed = make(chan struct{})
}

var errRefused = errors.New("the drill made the store unreachable")

// pass returns nil once requests, or answers, come through.
func (c *cuttable) pass(ctx context.Context) error {
	for {
		c.mu.Lock()
		order, changed := c.order, c.changed
		c.mu.Unlock()
		switch order {
		case orderRefuse:
			return errRefused
		case orderHang:
		default:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// throughCut is a store behind a network that can be cut. A request that the cut meets on its way
// is carried out, and its answer does not come.
type throughCut struct {
	store.Store
	cut *cuttable
}

// through does a request. After a write that was sent, a missing answer is an unknown outcome.
func through[T any](ctx context.Context, c *cuttable, write bool, f func(context.Context) (T, error)) (T, error) {
	var none T
	if err := c.pass(ctx); err != nil {
		return none, err
	}
	got, err := f(ctx)
	if passErr := c.pass(ctx); passErr != nil {
		if write {
			passErr = fmt.Errorf("%w: %w", store.ErrUnknownOutcome, passErr)
		}
		return none, passErr
	}
	return got, err
}

// Get implements [store.Store].
func (t *throughCut) Get(ctx context.Context, key string) (store.Record, error) {
	return through(ctx, t.cut, false, func(ctx context.Context) (store.Record, error) { return t.Store.Get(ctx, key) })
}

// Put implements [store.Store].
func (t *throughCut) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	return through(ctx, t.cut, true, func(ctx context.Context) (store.Record, error) { return t.Store.Put(ctx, rec) })
}

// Wait implements [store.Waiter].
func (t *throughCut) Wait(ctx context.Context, key, version string) (store.Record, error) {
	return through(ctx, t.cut, false, func(ctx context.Context) (store.Record, error) { return store.Wait(ctx, t.Store, key, version) })
}

// Delete implements [store.Store].
func (t *throughCut) Delete(ctx context.Context, key, version string) error {
	_, err := through(ctx, t.cut, true, func(ctx context.Context) (struct{}, error) { return struct{}{}, t.Store.Delete(ctx, key, version) })
	return err
}

// List implements [store.Store]. Nothing in a rehearsal lists.
func (t *throughCut) List(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		if err := t.cut.pass(ctx); err != nil {
			yield(store.Record{}, err)
			return
		}
		t.Store.List(ctx, prefix)(yield)
	}
}

// Hurry has the store look soon, where it polls.
func (t *throughCut) Hurry(key string) {
	if h, ok := t.Store.(interface{ Hurry(key string) }); ok {
		h.Hurry(key)
	}
}
