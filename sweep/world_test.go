package sweep_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
	"github.com/leasehold/leasehold/sweep"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ttl = 15 * time.Second
	day = 24 * time.Hour
)

// today is when tests begin by all wall clocks that are right: virtual time begins in 2000, when no token is sane.
const today = 26 * 365 * day

// world is one database and the processes on it, in virtual time. Its store vouches for no Age, so that everything is observed.
type world struct {
	t   *testing.T
	db  *memory.DB
	clk *clock.Fake // of the sweep
	all []*clock.Fake
}

func inWorld(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, db: memory.NewDB(memory.Options{Clock: clock.NewFake(0)}), clk: clock.NewFake(0)}
		w.clk.StepWall(today)
		w.all = []*clock.Fake{w.clk}
		f(t, w)
	})
}

// later has d pass by all wall clocks, and by no other: nobody has to renew for a month.
func (w *world) later(d time.Duration) {
	for _, clk := range w.all {
		clk.StepWall(d)
	}
}

func (w *world) open() store.Store { return faulty.Ageless(w.db.Open()) }

// process is one with a session. It is cut off from the store when it dies.
type process struct {
	*lease.Session
	m   *lease.Manager
	clk *clock.Fake
	out faulty.Outage
}

// process starts one whose wall clock is behind by lag.
func (w *world) process(lag time.Duration) *process {
	w.t.Helper()
	p := &process{clk: clock.NewFake(0)}
	p.clk.StepWall(w.clk.Wall().Sub(p.clk.Wall()) - lag)
	w.all = append(w.all, p.clk)
	net := faulty.Wrap(w.open(), p.out.Plan(nil))
	m, err := lease.NewManager(net, lease.Options{TTL: ttl, Clock: p.clk})
	if err != nil {
		w.t.Fatal(err)
	}
	p.m = m
	w.t.Cleanup(func() {
		if err := errors.Join(m.Close(), net.Close()); err != nil {
			w.t.Error(err)
		}
	})
	if p.Session, err = m.OpenSession(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return p
}

func (p *process) die() { p.out.Start() }

// hold takes a name by itself, or by the session.
func (w *world) hold(acquire func(context.Context, string) (*lease.Lease, error), name string) *lease.Lease {
	w.t.Helper()
	l, err := acquire(w.t.Context(), name)
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

// use takes a name and gives it back, and returns its token.
func (w *world) use(p *process, name string) *lease.Lease {
	w.t.Helper()
	l := w.hold(p.m.Acquire, name)
	if err := l.Release(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return l
}

// get reads a record; a key that isn't stored has no version.
func (w *world) get(key string) store.Record {
	w.t.Helper()
	rec, err := store.Load(w.t.Context(), w.db.Open(), key)
	if err != nil {
		w.t.Fatal(err)
	}
	return rec
}

func (w *world) put(rec store.Record) {
	w.t.Helper()
	rec.Version = w.get(rec.Key).Version
	if _, err := w.db.Open().Put(w.t.Context(), rec); err != nil {
		w.t.Fatal(err)
	}
}

// sweep runs one, and returns what it says of each record.
func (w *world) sweep(opts sweep.Options) (map[string]sweep.Action, sweep.Report) {
	w.t.Helper()
	found, report, err := w.trySweep(w.open(), opts)
	if err != nil {
		w.t.Fatal(err)
	}
	return found, report
}

func (w *world) trySweep(st store.Store, opts sweep.Options) (map[string]sweep.Action, sweep.Report, error) {
	found := map[string]sweep.Action{}
	opts.Clock = w.clk
	opts.OnFinding = func(f sweep.Finding) {
		found[f.Key] = f.Action // the last one: a session is closed, and then deleted
		w.t.Log(f)
	}
	report, err := sweep.Run(w.t.Context(), st, opts)
	return found, report, err
}
