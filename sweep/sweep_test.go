package sweep_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/identity"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/internal/roster"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/lock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/sweep"
)

func expect(t *testing.T, when string, found, want map[string]sweep.Action) {
	t.Helper()
	if !maps.Equal(found, want) {
		t.Errorf("%s: found %v, want %v", when, found, want)
	}
}

func must[T any](v T, err error) func(t *testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// A name that has been free for long goes, and only then.
func TestAFreeNameGoesWhenItIsOld(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process(0)
		w.hold(p.Manager().Acquire, "held")
		w.use(p, "old")
		w.later(20 * day)
		w.use(p, "young")
		w.later(10*day - time.Minute)
		found, report := w.sweep(sweep.Options{})
		expect(t, "after 30 days less a minute", found, map[string]sweep.Action{})
		if report.Records != 4 || report.Unsettled != 0 {
			t.Errorf("%+v", report)
		}
		w.later(2 * time.Minute)
		found, _ = w.sweep(sweep.Options{})
		expect(t, "after 30 days", found, map[string]sweep.Action{"old": sweep.Deleted})
		if w.Get("old").Version != "" || w.Get("young").Version == "" || w.Get("held").Owner == "" {
			t.Error("the wrong records are gone")
		}
		found, _ = w.sweep(sweep.Options{OlderThan: 5 * day})
		expect(t, "older than 5 days", found, map[string]sweep.Action{"young": sweep.Deleted})
	})
}

// The next token after a sweep is higher than the last one before, though nothing remembers that, for clocks that are behind by
// less than the retention; and the guard that remembers goes on refusing the old one.
func TestTokensRiseOverASweep(t *testing.T) {
	for _, lag := range []time.Duration{0, -10 * day, time.Hour, 29 * day} {
		inWorld(t, func(t *testing.T, w *world) {
			first := w.use(w.process(0), "job")
			w.later(30*day + time.Minute)
			found, _ := w.sweep(sweep.Options{})
			expect(t, "sweep", found, map[string]sweep.Action{"job": sweep.Deleted})
			next := w.use(w.process(lag), "job")
			if next.Token() <= first.Token() {
				t.Errorf("a clock behind by %v: token %d after %d", lag, next.Token(), first.Token())
			}
			var mark fence.Mark
			for _, l := range []*lease.Lease{first, next} {
				m, err := mark.Admit("job", l.Holder(), l.Token())
				if err != nil {
					t.Errorf("a clock behind by %v: token %d is refused: %v", lag, l.Token(), err)
				}
				mark = m
			}
			if _, err := mark.Admit("job", first.Holder(), first.Token()); !errors.Is(err, fence.ErrStale) {
				t.Errorf("the old token is admitted after the new one: %v", err)
			}
		})
	}
}

// A token that is ahead of the clock, or that no clock that is right has made, stays, so that the next one is higher.
func TestATokenThatMightNotBeReachedStays(t *testing.T) {
	for how, clockOf := range map[string]func(w *world) *process{
		"its clock was a year ahead":    func(w *world) *process { return w.process(-365 * day) },
		"its clock had no time to show": func(w *world) *process { return w.process(w.clk.Wall().Sub(time.UnixMilli(0))) },
	} {
		t.Run(how, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				p := clockOf(w)
				first := w.use(p, "job")
				rec := w.Get("job")
				rec.Past[0].Until = w.clk.Wall() // a right clock's, say
				w.Put(rec)
				w.later(31 * day)
				found, _ := w.sweep(sweep.Options{})
				if found["job"] != sweep.Kept || w.Get("job").Version == "" {
					t.Errorf("%v: %+v", found, w.Get("job"))
				}
				if next := w.use(p, "job"); next.Token() <= first.Token() {
					t.Errorf("token %d after %d", next.Token(), first.Token())
				}
			})
		})
	}
}

// What a dead process has left behind goes: at first its holds, which others may have for the asking; then its session.
func TestWhatADeadProcessLeavesBehindGoes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		dead, alive := w.process(0), w.process(0)
		for _, p := range []*process{dead, alive} {
			who := map[*process]string{dead: "dead", alive: "alive"}[p]
			w.hold(p.Manager().Acquire, who+"/itself")
			w.hold(p.Acquire, who+"/session")
		}
		dead.Cut()
		began := w.clk.Now()
		found, report := w.sweep(sweep.Options{})
		expect(t, "sweep", found, map[string]sweep.Action{
			"dead/itself": sweep.Freed, "dead/session": sweep.Freed, dead.Key(): sweep.Deleted,
		})
		if took := w.clk.Now().Sub(began); took < ttl || took > ttl+time.Second {
			t.Errorf("it took %v", took)
		}
		if report.Actions[sweep.Closed] != 1 || w.Get(dead.Key()).Version != "" {
			t.Errorf("%+v; the session: %+v", report, w.Get(dead.Key()))
		}
		for _, name := range []string{"dead/itself", "dead/session"} {
			if rec := w.Get(name); rec.Owner != "" || rec.Token == 0 || len(rec.Past) != 1 {
				t.Errorf("%+v", rec)
			}
		}
		if err := alive.Check(); err != nil {
			t.Error(err)
		}
		w.later(31 * day)
		found, _ = w.sweep(sweep.Options{})
		expect(t, "a month after", found, map[string]sweep.Action{"dead/itself": sweep.Deleted, "dead/session": sweep.Deleted})
	})
}

// A holder that can't be reached is valid until its validity ends. Nobody who takes the name after a sweep has freed it overlaps
// with it, whatever their clocks do within the bound.
func TestASweepEndsNobodyWhoIsValid(t *testing.T) {
	for _, rate := range []float64{0.9, 1, 1.1} {
		inWorld(t, func(t *testing.T, w *world) {
			p := w.process(0)
			p.Clk.SetRate(rate)
			kept, own := w.hold(p.Acquire, "kept"), w.hold(p.Manager().Acquire, "own")
			p.Cut()
			next := w.process(0)
			done := make(chan struct{})
			go func() {
				defer close(done)
				w.sweep(sweep.Options{})
			}()
			for _, l := range []*lease.Lease{kept, own} {
				w.hold(next.Manager().Acquire, l.Name())
				if err := l.Check(); !errors.Is(err, lease.ErrLost) {
					t.Errorf("%s is held by two: %v", l.Name(), err)
				}
			}
			<-done
		})
	}
}

// Whoever takes a name, a lock or a session's name in between keeps it.
func TestASweepMeetsAnotherWrite(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process(0)
		w.use(p, "job")
		w.hold(p.Manager().Acquire, "dying")
		w.later(31 * day)
		again := w.process(0)
		p.Cut()
		net := faulty.Wrap(w.Open(), nil)
		defer net.Close()
		taken := false
		net.SetPlan(func(op faulty.Op) faulty.Fault {
			switch {
			case op.Kind == faulty.Delete && op.Key == "job" && !taken:
				taken = true
				w.hold(again.Manager().Acquire, "job")
			case op.Kind == faulty.Put && op.Key == "dying":
				rec := w.Get("dying") // a renewal that was long on its way
				rec.Nonce = "late"
				w.Put(rec)
			}
			return faulty.Fault{}
		})
		found, report, err := w.trySweep(net, sweep.Options{})
		if err != nil || report.Overtaken != 2 {
			t.Errorf("%v: %+v", err, report)
		}
		expect(t, "sweep", found, map[string]sweep.Action{p.Key(): sweep.Deleted})
		if !taken || w.Get("job").Owner == "" || w.Get("dying").Owner == "" {
			t.Errorf("taken %t: %+v %+v", taken, w.Get("job"), w.Get("dying"))
		}
	})
}

// Locks and elections that nobody uses any more go, and what is used or declared stays.
func TestLocksAndElections(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		dead, alive := w.process(0), w.process(0)
		for who, p := range map[string]*process{"dead": dead, "alive": alive} {
			sem := must(lock.NewSemaphore(p.Session, "licences", lock.SemaphoreOptions{Limit: 3}))(t)
			must(sem.Acquire(t.Context(), 1))(t)
			rw := must(lock.NewRWMutex(p.Session, who+"/rw"))(t)
			must(rw.RLock(t.Context()))(t)
			stand(t, p, who+"/election")
		}
		if err := election.SetPause(t.Context(), w.Open(), "paused", election.Pause{By: "ada", Reason: "a test", Since: w.clk.Wall()}); err != nil {
			t.Fatal(err)
		}
		given := must(lock.NewSemaphore(alive.Session, "given", lock.SemaphoreOptions{Limit: 3}))(t)
		share := must(given.Acquire(t.Context(), 1))(t)
		before := share.Token()
		if err := share.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		dead.Cut()
		found, _ := w.sweep(sweep.Options{})
		delete(found, dead.Key())
		for key := range found { // the election's own sessions
			if keyspace.OwnerOf(key) != "" {
				delete(found, key)
			}
		}
		expect(t, "sweep", found, map[string]sweep.Action{
			"licences": sweep.Pruned, "given": sweep.Pruned, "dead/rw": sweep.Pruned, ".election/dead/election": sweep.Pruned, "dead/election": sweep.Freed,
		})
		state := must(roster.Load(t.Context(), w.Open(), "licences"))(t)
		if len(state.Held) != 1 || state.Held[0].Session != alive.Key() || state.Limit != 3 {
			t.Errorf("%+v", state)
		}
		w.later(31 * day)
		found, _ = w.sweep(sweep.Options{})
		expect(t, "a month after", found, map[string]sweep.Action{
			"given": sweep.Deleted, "dead/rw": sweep.Deleted, ".election/dead/election": sweep.Deleted, "dead/election": sweep.Deleted,
		})
		if p := must(election.ReadState(t.Context(), w.Open(), "paused"))(t).Pause; p == nil {
			t.Error("the pause is gone")
		}
		sem := must(lock.NewSemaphore(alive.Session, "given", lock.SemaphoreOptions{Limit: 5}))(t)
		if h := must(sem.Acquire(t.Context(), 5))(t); h.Token() <= before {
			t.Errorf("token %d after %d", h.Token(), before)
		}
	})
}

// A pause that has ended by itself is none: its record goes as that of an election that nobody uses.
func TestAPauseThatIsOverGoes(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		now := w.clk.Wall()
		if err := election.SetPause(t.Context(), w.Open(), "paused", election.Pause{By: "ada", Since: now, Until: now.Add(time.Hour)}); err != nil {
			t.Fatal(err)
		}
		found, _ := w.sweep(sweep.Options{})
		expect(t, "at first", found, nil)
		w.later(31 * day)
		found, _ = w.sweep(sweep.Options{})
		expect(t, "when it is over", found, map[string]sweep.Action{".election/paused": sweep.Pruned})
		w.later(31 * day)
		found, _ = w.sweep(sweep.Options{})
		expect(t, "a month after that", found, map[string]sweep.Action{".election/paused": sweep.Deleted})
	})
}

// stand has p be a candidate until the test ends.
func stand(t *testing.T, p *process, name string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done, leads := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		_ = election.Run(ctx, p.Manager(), name, election.Callbacks{OnStartedLeading: func(ctx context.Context, _ election.Term) {
			select {
			case <-leads:
			default:
				close(leads)
			}
			<-ctx.Done()
		}}, election.Options{})
	}()
	<-leads
	synctest.Wait() // until it is on the list
	t.Cleanup(func() { cancel(); <-done })
}

// A lock that was found unused and is used again is in use.
func TestALockThatIsUsedAgainStays(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process(0)
		rw := must(lock.NewRWMutex(p.Session, "data"))(t)
		turn := func() {
			h := must(rw.Lock(t.Context()))(t)
			if err := h.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		turn()
		found, _ := w.sweep(sweep.Options{})
		expect(t, "at first", found, map[string]sweep.Action{"data": sweep.Pruned})
		w.later(31 * day)
		turn()
		w.later(31 * day)
		found, _ = w.sweep(sweep.Options{})
		expect(t, "used again", found, map[string]sweep.Action{"data": sweep.Pruned})
		w.later(29 * day)
		found, _ = w.sweep(sweep.Options{})
		expect(t, "unused, not for long", found, map[string]sweep.Action{})
		w.later(2 * day)
		found, _ = w.sweep(sweep.Options{})
		expect(t, "unused", found, map[string]sweep.Action{"data": sweep.Deleted})
		before := must(roster.Load(t.Context(), w.Open(), "data"))(t)
		turn()
		if after := must(roster.Load(t.Context(), w.Open(), "data"))(t); before.Kind != "" || after.Kind != roster.RW {
			t.Errorf("%+v, then %+v", before, after)
		}
	})
}

// What ids depend on stays, and so does what this version doesn't know.
func TestWhatOthersDependOnStays(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process(0)
		h := must(identity.Claim(t.Context(), p.Session, "machines", identity.Options{Values: identity.Values{Range: "0-3"}, Name: "a"}))(t)
		if err := h.Release(t.Context(), time.Time{}); err != nil {
			t.Fatal(err)
		}
		w.use(p, "data")
		rec := w.Get("data")
		rec.Data = []byte("of a primitive to come")
		w.Put(rec)
		w.Put(store.Record{Key: ".newer/thing", Nonce: "n"})
		w.Put(store.Record{Key: "another-program's", Token: fence.Token(w.clk.Wall().UnixMilli())})
		before := must(keys(w.Open()))(t)
		w.later(400 * day)
		found, _ := w.sweep(sweep.Options{OlderThan: time.Hour})
		expect(t, "sweep", found, map[string]sweep.Action{"data": sweep.Kept, "another-program's": sweep.Kept})
		if after := must(keys(w.Open()))(t); !slices.Equal(before, after) {
			t.Errorf("%q, and after the sweep %q", before, after)
		}
	})
}

func keys(st store.Store) (all []string, err error) {
	for rec, err := range st.List(context.Background(), "") {
		if err != nil {
			return nil, err
		}
		all = append(all, rec.Key)
	}
	return all, nil
}

// A dry run finds what a real one does, and writes nothing.
func TestADryRunWritesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process(0)
		w.use(p, "old")
		rw := must(lock.NewRWMutex(p.Session, "rw"))(t)
		w.later(31 * day)
		must(rw.RLock(t.Context()))(t)
		w.hold(p.Acquire, "kept")
		w.hold(p.Manager().Acquire, "own")
		p.Cut()
		net := faulty.Wrap(w.Open(), nil)
		defer net.Close()
		dry, report, err := w.trySweep(net, sweep.Options{DryRun: true})
		if err != nil || net.Count(faulty.Put)+net.Count(faulty.Delete) != 0 {
			t.Errorf("%v: %d writes, %d deletions", err, net.Count(faulty.Put), net.Count(faulty.Delete))
		}
		found, again := w.sweep(sweep.Options{})
		expect(t, "the real one", found, dry)
		if len(found) != 5 || fmt.Sprint(report) != fmt.Sprint(again) {
			t.Errorf("%v: %+v, then %+v", found, report, again)
		}
	})
}

func TestPrefix(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process(0)
		for _, name := range []string{"a/1", "a/2", "b/1"} {
			w.use(p, name)
			must(must(lock.NewRWMutex(p.Session, "rw/"+name))(t).RLock(t.Context()))(t)
			must(must(lock.NewRWMutex(p.Session, name[:2]+"shared"))(t).RLock(t.Context()))(t)
		}
		w.later(31 * day)
		p.Cut()
		found, _ := w.sweep(sweep.Options{Prefix: "a/"})
		expect(t, "a/", found, map[string]sweep.Action{
			"a/1": sweep.Deleted, "a/2": sweep.Deleted, "a/shared": sweep.Pruned, p.Key(): sweep.Closed,
		})
		if w.Get(p.Key()).Version == "" {
			t.Error("a session went with names of a prefix")
		}
	})
}

// What is held for longer than a sweep watches is left alone.
func TestObserveBoundsTheWatch(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process(0)
		w.hold(p.Manager().Acquire, "own")
		p.Cut()
		began := w.clk.Now()
		found, report := w.sweep(sweep.Options{Observe: ttl - time.Second})
		if len(found) != 0 || report.Unsettled != 2 || w.clk.Now() != began {
			t.Errorf("%v, %+v after %v", found, report, w.clk.Now().Sub(began))
		}
	})
}

// What fails with one record keeps nobody from the others, and is told.
func TestFailures(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process(0)
		for _, name := range []string{"a", "b", "c"} {
			w.use(p, name)
		}
		w.Put(store.Record{Key: ".lock/bad", Nonce: "n", Data: []byte("{")})
		w.later(31 * day)
		full := errors.New("the disk is full")
		net := faulty.Wrap(w.Open(), func(op faulty.Op) faulty.Fault {
			switch {
			case op.Kind == faulty.Delete && op.Key == "b":
				return faulty.Fault{Err: full}
			case op.Kind == faulty.Delete && op.Key == "c":
				return faulty.Fault{LoseReply: true}
			}
			return faulty.Fault{}
		})
		defer net.Close()
		found, _, err := w.trySweep(net, sweep.Options{})
		if !errors.Is(err, full) || !errors.Is(err, store.ErrCorrupt) || !errors.Is(err, store.ErrUnknownOutcome) {
			t.Error(err)
		}
		expect(t, "sweep", found, map[string]sweep.Action{"a": sweep.Deleted})

		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(full)
		if _, err := sweep.Run(ctx, w.Open(), sweep.Options{Clock: w.clk}); !errors.Is(err, full) {
			t.Error(err)
		}
	})
}

func TestOptions(t *testing.T) {
	for field, opts := range map[string]sweep.Options{
		"OlderThan": {OlderThan: time.Minute}, "Observe": {Observe: -1}, "Prefix": {Prefix: ".session/"}, "Key": {Prefix: "\x00"},
	} {
		_, err := sweep.Run(t.Context(), nil, opts)
		if invalid := new(store.InvalidError); !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

// Sweeps run beside processes that take, release and lose names. None of them notices.
func TestSweepsDisturbNobody(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		stop := w.T.Context()
		ctx, cancel := context.WithCancel(stop)
		var mu sync.Mutex
		highest := map[string]fence.Token{}
		var busy []chan struct{}
		for i := range 4 {
			p, done := w.process(time.Duration(i)*time.Minute), make(chan struct{})
			busy = append(busy, done)
			go func() {
				defer close(done)
				for n := 0; ctx.Err() == nil; n++ {
					l, err := p.Acquire(ctx, fmt.Sprint("job", n%3))
					if err != nil {
						if ctx.Err() == nil {
							t.Error(err)
						}
						return
					}
					mu.Lock()
					if l.Token() <= highest[l.Name()] {
						t.Errorf("%s: token %d after %d", l.Name(), l.Token(), highest[l.Name()])
					}
					highest[l.Name()] = l.Token()
					mu.Unlock()
					time.Sleep(time.Duration(n%7) * time.Second)
					if err := l.Release(stop); err != nil {
						t.Error(err)
					}
					time.Sleep(time.Duration(n%5) * 10 * time.Second)
				}
			}()
		}
		deleted := 0
		for range 100 {
			_, report := w.sweep(sweep.Options{OlderThan: time.Hour})
			deleted += report.Actions[sweep.Deleted]
			w.later(50 * time.Minute)
		}
		cancel()
		for _, done := range busy {
			<-done
		}
		synctest.Wait()
		if deleted == 0 {
			t.Error("no sweep has met anything to delete")
		}
	})
}
