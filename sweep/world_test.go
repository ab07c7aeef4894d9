package sweep_test

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/sweep"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ttl = leasetest.TTL
	day = 24 * time.Hour
)

// today is when tests begin by all wall clocks that are right: virtual time begins in 2000, when no token is sane.
const today = 26 * 365 * day

// world has a store that vouches for no Age, so that everything is observed.
type world struct {
	*leasetest.World
	clk *clocktest.Clock // of the sweep
	all []*clocktest.Clock
}

func inWorld(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	leasetest.Run(t, func(t *testing.T, of *leasetest.World) {
		of.Ageless = true
		w := &world{World: of, clk: clocktest.New(0)}
		w.clk.StepWall(today)
		w.all = []*clocktest.Clock{w.clk}
		f(t, w)
	})
}

// later has d pass by all wall clocks, and by no other: nobody has to renew for a month.
func (w *world) later(d time.Duration) {
	for _, clk := range w.all {
		clk.StepWall(d)
	}
}

type process = leasetest.Process

// process starts one whose wall clock is behind by lag.
func (w *world) process(lag time.Duration) *process {
	w.T.Helper()
	h := w.Host(nil)
	h.Clk.StepWall(w.clk.Wall().Sub(h.Clk.Wall()) - lag)
	w.all = append(w.all, h.Clk)
	return h.Process(h.Net, lease.Options{})
}

// hold takes a name by itself, or by the session.
func (w *world) hold(acquire func(context.Context, string, ...lease.AcquireOption) (*lease.Lease, error), name string) *lease.Lease {
	w.T.Helper()
	l, err := acquire(w.T.Context(), name)
	if err != nil {
		w.T.Fatal(err)
	}
	return l
}

// use takes a name and gives it back, and returns its token.
func (w *world) use(p *process, name string) *lease.Lease {
	w.T.Helper()
	l := w.hold(p.Manager().Acquire, name)
	if err := l.Release(w.T.Context()); err != nil {
		w.T.Fatal(err)
	}
	return l
}

// sweep runs one, and returns what it says of each record.
func (w *world) sweep(opts sweep.Options) (map[string]sweep.Action, sweep.Report) {
	w.T.Helper()
	found, report, err := w.trySweep(w.Open(), opts)
	if err != nil {
		w.T.Fatal(err)
	}
	return found, report
}

func (w *world) trySweep(st store.Store, opts sweep.Options) (map[string]sweep.Action, sweep.Report, error) {
	found := map[string]sweep.Action{}
	opts.Clock = w.clk
	opts.OnFinding = func(f sweep.Finding) {
		found[f.Key] = f.Action // the last one: a session is closed, and then deleted
		w.T.Log(f)
	}
	report, err := sweep.Run(w.T.Context(), st, opts)
	return found, report, err
}
