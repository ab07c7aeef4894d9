package shards

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

// aims are runs that are aimed at one rule each, where chance alone would seldom meet what the rule is for.
var aims = map[string]func(ctx context.Context, a, b *process, st store.Store) error{
	"a pass-on lands late":     passOnLandsLate,
	"a stopped owner, cut off": stoppedAndCutOff,
}

// aim lets the worker a own the only slice, beside b, does what is aimed, and returns what was seen. An error says that the run
// didn't come to what it is aimed at.
func aim(t *testing.T, f func(ctx context.Context, a, b *process, st store.Store) error) (l *Ledger, err error) {
	l = NewLedger()
	synctest.Test(t, func(t *testing.T) {
		db := memory.NewDB(memory.Options{Clock: clocktest.New(0)})
		w := &world{t: t, kind: kind{keys: []string{"x"}}, ledger: l}
		st := db.Open()
		defer st.Close()
		for _, name := range []string{"b", "a"} { // the first is the assigner
			p := &process{w: w, clk: clocktest.New(clock.Instant(time.Hour))}
			p.net = faulty.Wrap(faulty.Ageless(db.Open()), p.outage.Plan(nil))
			if p.m, err = lease.NewManager(p.net, lease.Options{TTL: ttl, Clock: p.clk}); err != nil {
				t.Fatal(err)
			}
			defer p.close()
			if p.o, err = shard.Join(t.Context(), p.m, shard.Space{Name: "s", Names: w.kind.keys}, shard.Worker{
				Name:  name,
				Drain: func(context.Context, *shard.Slice) { time.Sleep(time.Second) }, // it serves meanwhile
			}); err != nil {
				return
			}
			w.workers = append(w.workers, p)
			time.Sleep(ttl)
		}
		b, a := w.workers[0].(*process), w.workers[1].(*process)
		if err = shard.RequestMove(t.Context(), st, "s", "x", "a"); err != nil {
			return
		}
		time.Sleep(ttl)
		if _, err = a.o.Check("x"); err != nil {
			return
		}
		observed := make(chan struct{})
		go func() {
			defer close(observed)
			w.observe()
		}()
		err = f(t.Context(), a, b, st)
		w.mu.Lock()
		w.over = true
		w.mu.Unlock()
		<-observed
	})
	return l, err
}

// passOnLandsLate: the owner hears nothing of the write that passes its slice on, which lands after the owner has read the old
// version; nor can it write again before, and it hears of the change late.
func passOnLandsLate(ctx context.Context, a, b *process, st store.Store) error {
	var sent atomic.Bool
	a.net.SetPlan(func(op faulty.Op) faulty.Fault {
		switch chunk := strings.Contains(op.Key, "/c/"); {
		case chunk && op.Kind == faulty.Put && !sent.Swap(true):
			return faulty.Fault{ApplyLate: 3 * time.Second}
		case chunk && op.Kind == faulty.Put:
			return faulty.Fault{Err: faulty.ErrLost}
		case chunk && op.Kind == faulty.Push:
			return faulty.Fault{Delay: 2 * time.Second}
		}
		return faulty.Fault{}
	})
	defer a.net.SetPlan(nil)
	if err := shard.RequestMove(ctx, st, "s", "x", "b"); err != nil {
		return err
	}
	time.Sleep(10 * time.Second)
	if !sent.Load() {
		return errors.New("no write was sent that passes the slice on")
	}
	_, err := b.o.Check("x")
	return err
}

// stoppedAndCutOff: no timer of the owner fires, and it hears nothing, while others take its slice.
func stoppedAndCutOff(_ context.Context, a, b *process, _ store.Store) error {
	a.outage.Start()
	defer a.outage.End()
	a.clk.Pause()
	defer a.clk.Resume()
	time.Sleep(2 * ttl)
	_, err := b.o.Check("x")
	return err
}

// With all rules in place nothing is wrong in the runs that are aimed at them.
func TestAimedRunsAreClean(t *testing.T) {
	for name, f := range aims {
		t.Run(name, func(t *testing.T) {
			l, err := aim(t, f)
			if err := errors.Join(err, l.Err()); err != nil {
				t.Error(err)
			}
			if passed, terms := l.Seen(); passed < 100 || terms < 2 {
				t.Errorf("%d checks passed, %d terms: too few", passed, terms)
			}
		})
	}
}
