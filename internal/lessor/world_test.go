package lessor

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ttl      = leasetest.TTL
	validity = leasetest.Validity
)

type world struct {
	*leasetest.World

	onQueue func(key string, waiting int)
}

func inWorld(t *testing.T, f func(*testing.T, *world)) {
	t.Helper()
	leasetest.Run(t, func(t *testing.T, w *leasetest.World) { f(t, &world{World: w}) })
}

// registry opens one more, behind a network of its own.
func (w *world) registry() (*Registry, *faulty.Store) {
	net := faulty.Wrap(w.Open(), nil)
	r := New(net, Options{Clock: w.Clk, OnQueue: w.onQueue})
	w.T.Cleanup(func() {
		_ = r.Close()
		_ = net.Close()
	})
	return r, net
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

func names(n int) (owners []string) {
	for i := range n {
		owners = append(owners, fmt.Sprintf("holder-%02d", i))
	}
	return owners
}
