package shards

import (
	"context"
	"errors"
	"fmt"
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

// aimed is a run that is aimed at a rule: the worker a owns the only slice, beside b.
type aimed struct {
	a, b, c *process
	st      store.Store  // the operator's
	pair    *faulty.Pair // nil where the store doesn't fail over; then there is no c
}

// aims are runs that are aimed at one rule each, where chance alone would seldom meet what the rule is for.
var aims = map[string]struct {
	paired bool // on a store that fails over
	come   func(ctx context.Context, r aimed) error
}{
	"a pass-on lands late":     {false, passOnLandsLate},
	"a stopped owner, cut off": {false, stoppedAndCutOff},
	"a pass-on is lost":        {true, passOnIsLost},
}

// aim lets what is aimed come about, and returns what was seen. An error says that the run didn't come to what it is aimed at.
func aim(t *testing.T, name string) (l *Ledger, err error) {
	l = NewLedger()
	synctest.Test(t, func(t *testing.T) {
		db := memory.NewDB(memory.Options{Clock: clocktest.New(0)})
		w := &world{t: t, kind: kind{keys: []string{"x"}}, ledger: l}
		r, workers := aimed{}, []string{"b", "a"} // the first is the assigner
		w.open = func() store.Store { return faulty.Ageless(db.Open()) }
		if aims[name].paired {
			r.pair, workers = faulty.NewPair(clocktest.New(0)), []string{"c", "b", "a"}
			w.open = func() store.Store { return r.pair.Open(store.ReadLeader) }
		}
		r.st = w.open()
		defer r.st.Close()
		all := map[string]*process{}
		for _, name := range workers {
			p := &process{w: w, clk: clocktest.New(clock.Instant(time.Hour))}
			p.net = faulty.Wrap(w.open(), p.outage.Plan(nil))
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
			all[name] = p
			time.Sleep(ttl)
		}
		r.a, r.b, r.c = all["a"], all["b"], all["c"]
		if err = shard.RequestMove(t.Context(), r.st, "s", "x", "a"); err != nil {
			return
		}
		time.Sleep(ttl)
		if _, err = r.a.o.Check("x"); err != nil {
			return
		}
		observed := make(chan struct{})
		go func() {
			defer close(observed)
			w.observe()
		}()
		err = aims[name].come(t.Context(), r)
		w.mu.Lock()
		w.over = true
		w.mu.Unlock()
		<-observed
	})
	return l, err
}

// passOnLandsLate: the owner hears nothing of the write that passes its slice on, which lands after the owner has read the old
// version; nor can it write again before, and it hears of the change late.
func passOnLandsLate(ctx context.Context, r aimed) error {
	var sent atomic.Bool
	r.a.net.SetPlan(func(op faulty.Op) faulty.Fault {
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
	defer r.a.net.SetPlan(nil)
	if err := shard.RequestMove(ctx, r.st, "s", "x", "b"); err != nil {
		return err
	}
	time.Sleep(10 * time.Second)
	if !sent.Load() {
		return errors.New("no write was sent that passes the slice on")
	}
	_, err := r.b.o.Check("x")
	return err
}

// stoppedAndCutOff: no timer of the owner fires, and it hears nothing, while others take its slice.
func stoppedAndCutOff(_ context.Context, r aimed) error {
	r.a.outage.Start()
	defer r.a.outage.End()
	r.a.clk.Pause()
	defer r.a.clk.Resume()
	time.Sleep(2 * ttl)
	_, err := r.b.o.Check("x")
	return err
}

// passOnIsLost: the owner passes its slice on to b in a write that a failover takes back, as b is cut off. Then it passes the slice on to
// another one.
func passOnIsLost(ctx context.Context, r aimed) error {
	if err := shard.RequestMove(ctx, r.st, "s", "x", "b"); err != nil {
		return err
	}
	time.Sleep(500 * time.Millisecond) // it is being drained
	r.pair.Detach()
	time.Sleep(time.Second)
	st := r.pair.Primary()
	defer st.Close()
	if e, err := shard.Lookup(ctx, st, "s", "x"); err != nil || e.Next != "" {
		return fmt.Errorf("the slice was not passed on before the failover: %+v, %v", e, err)
	}
	r.b.outage.Start()
	defer r.b.outage.End()
	r.pair.FailOver()
	if err := shard.RequestMove(ctx, r.st, "s", "x", "c"); err != nil {
		return err
	}
	time.Sleep(4 * time.Second)
	_, err := r.c.o.Check("x")
	return err
}

// With all rules in place nothing is wrong in the runs that are aimed at them.
func TestAimedRunsAreClean(t *testing.T) {
	for name := range aims {
		t.Run(name, func(t *testing.T) {
			l, err := aim(t, name)
			if err := errors.Join(err, l.Err()); err != nil {
				t.Error(err)
			}
			if passed, terms := l.Seen(); passed < 100 || terms < 2 {
				t.Errorf("%d checks passed, %d terms: too few", passed, terms)
			}
		})
	}
}
