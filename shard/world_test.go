package shard_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ttl = 15 * time.Second

// world is a store in a bubble of virtual time, and what shares it.
type world struct {
	t  *testing.T
	db *memory.DB
	st *memory.Store
}

func inWorld(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, db: memory.NewDB(memory.Options{Clock: clocktest.New(0)})}
		w.st = w.db.Open()
		f(t, w)
	})
}

// process is a worker on a machine of its own.
type process struct {
	*shard.Owner
	net    *faulty.Store
	clk    *clocktest.Clock
	outage faulty.Outage
}

// join starts a worker whose store pushes and vouches for no age. It ends with the test.
func (w *world) join(space shard.Space, worker shard.Worker) *process {
	w.t.Helper()
	p := &process{clk: clocktest.New(clock.Instant(time.Hour))}
	p.net = faulty.Wrap(faulty.Ageless(w.db.Open()), p.outage.Plan(nil))
	m, err := lease.NewManager(p.net, lease.Options{TTL: ttl, Clock: p.clk})
	if err != nil {
		w.t.Fatal(err)
	}
	if p.Owner, err = shard.Join(w.t.Context(), m, space, worker); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		p.outage.End()
		if err := p.Close(); err != nil {
			w.t.Error(err)
		}
		if err := m.Close(); err != nil {
			w.t.Error(err)
		}
		if err := p.net.Close(); err != nil {
			w.t.Error(err)
		}
	})
	return p
}

// settle lets virtual time pass until nothing is on the move.
func settle() { time.Sleep(2 * time.Second); synctest.Wait() }

// counts returns how many slices each worker serves.
func counts(all ...*process) (n []int) {
	for _, p := range all {
		n = append(n, len(p.Slices()))
	}
	return n
}

// names returns n names.
func names(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("p%03d", i))
	}
	return all
}

func entries(t *testing.T, st store.Store, space string) (all []shard.Entry) {
	t.Helper()
	for e, err := range shard.Map(context.Background(), st, space) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}
