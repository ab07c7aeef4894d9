package lease_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

// inSight runs f with an observer of a store that vouches for no age, by a clock of its own, and a function that changes a record there.
func inSight(t *testing.T, f func(t *testing.T, o *lease.Observer, st store.Store, write func(key string, change func(*store.Record)))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		db := memory.NewDB(memory.Options{})
		st := faulty.Ageless(db.Open())
		defer func() { _ = st.Close() }()
		f(t, lease.NewObserver(st, lease.ObserverOptions{Clock: clocktest.New(0)}), st, func(key string, change func(*store.Record)) {
			t.Helper()
			err := store.Update(t.Context(), st, key, func(rec *store.Record) (bool, error) { change(rec); return true, nil })
			if err != nil {
				t.Fatal(err)
			}
		})
	})
}

// stands fails unless the name stands so, with that much left and no sign of life for so long.
func stands(t *testing.T, o *lease.Observer, want lease.Standing, silent, left time.Duration) {
	t.Helper()
	s, err := o.Status(t.Context(), "job")
	if err != nil || s.Standing != want || s.Silent != silent || s.ExpiresIn != left {
		t.Errorf("%s, silent for %v, expires in %v, %v; want %s, %v, %v", s.Standing, s.Silent, s.ExpiresIn, err, want, silent, left)
	}
	if known := o.Known("job"); known.Standing != s.Standing || known.Silent != s.Silent || known.Holder != s.Holder {
		t.Errorf("known: %+v, want %+v", known, s)
	}
}

// Who observes learns of an expiry where the store vouches for no age, and how long there is no sign of life. A label is none (S17).
func TestFinding_L11_AnObserverLearnsOfAnExpiry(t *testing.T) {
	inSight(t, func(t *testing.T, o *lease.Observer, st store.Store, write func(string, func(*store.Record))) {
		stands(t, o, lease.NameFree, 0, 0)
		write("job", alive("n1"))
		stands(t, o, lease.NameHeld, 0, ttl)
		time.Sleep(ttl - time.Second)
		stands(t, o, lease.NameHeld, ttl-time.Second, time.Second)
		write("job", alive("n2"))
		stands(t, o, lease.NameHeld, 0, ttl)
		time.Sleep(ttl - time.Second)
		labelled, err := st.Get(t.Context(), "job")
		if err == nil {
			_, err = st.Put(t.Context(), labelled) // another version of the same write
		}
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		stands(t, o, lease.NameExpired, ttl, 0)
		time.Sleep(9 * time.Minute)
		stands(t, o, lease.NameExpired, ttl+9*time.Minute, 0)
		if s := o.Known("job"); s.SilentFor() != ttl+9*time.Minute || s.Holder != "holder" || s.Token != 5 || s.TTL != ttl {
			t.Errorf("%+v", s)
		}
		write("job", func(rec *store.Record) { rec.Owner, rec.Nonce = "", "n3" })
		stands(t, o, lease.NameFree, 0, 0)
		for mark, want := range map[store.Intervention]lease.Standing{store.InterventionBroken: lease.NameBroken, store.InterventionHandedOver: lease.NameHanded} {
			write("job", alive("n"+string(mark)))
			write("job", func(rec *store.Record) { rec.Intervention = mark })
			stands(t, o, want, 0, ttl)
			time.Sleep(ttl)
			stands(t, o, lease.NameExpired, ttl, 0)
		}
		if s := o.Known("never"); s.Name != "never" || s.Standing != "" {
			t.Errorf("a name that was never looked at: %+v", s)
		}
	})
}

// A name that a session keeps lives as long as that: its renewals count, not those of the name.
func TestFinding_L11_ASessionsSignOfLife(t *testing.T) {
	inSight(t, func(t *testing.T, o *lease.Observer, _ store.Store, write func(string, func(*store.Record))) {
		const session = ".session/holder/1"
		renew := func(nonce string) {
			write(session, func(rec *store.Record) {
				rec.Owner, rec.Token, rec.TTL, rec.Nonce = "holder", 1, 2*ttl, nonce
			})
		}
		write("job", alive("n1"))
		write("job", func(rec *store.Record) { rec.Session = session })
		renew("s1")
		stands(t, o, lease.NameHeld, 0, 2*ttl)
		time.Sleep(2*ttl - time.Second)
		renew("s2")
		stands(t, o, lease.NameHeld, 0, 2*ttl)
		time.Sleep(2 * ttl)
		stands(t, o, lease.NameExpired, 2*ttl, 0)
		write(session, func(rec *store.Record) { rec.Owner = "" })
		if s, err := o.Status(t.Context(), "job"); err != nil || s.Standing != lease.NameExpired {
			t.Errorf("the session is closed: %+v, %v", s, err)
		}
	})
}

// Watch tells each change once: an expiry too, which no write tells, and an error with what was known.
func TestFinding_L11_WatchTellsOfAnExpiry(t *testing.T) {
	inSight(t, func(t *testing.T, _ *lease.Observer, st store.Store, write func(string, func(*store.Record))) {
		write("job", alive("n1"))
		start := time.Now()
		go func() {
			time.Sleep(ttl / 3)
			write("job", alive("n2")) // a renewal is no change
			time.Sleep(2 * ttl)
			write("job", func(rec *store.Record) { rec.Owner, rec.Nonce = "", "n3" })
		}()
		down := false
		flaky := faulty.Wrap(st, func(op faulty.Op) faulty.Fault {
			if down && op.Kind == faulty.Get {
				return faulty.Fault{Err: errRefused}
			}
			return faulty.Fault{}
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var told []lease.Standing
		var at []time.Duration
		for s, err := range lease.Watch(ctx, flaky, "job", lease.ObserverOptions{Clock: clocktest.New(0)}) {
			if err != nil {
				if !errors.Is(err, errRefused) || s.Standing != lease.NameFree {
					t.Errorf("%+v, %v", s, err)
				}
				break
			}
			told, at = append(told, s.Standing), append(at, time.Since(start).Round(time.Second))
			if s.Standing == lease.NameFree {
				down = true
				write("job", alive("n4"))
			}
		}
		want := []time.Duration{0, ttl/3 + ttl, ttl/3 + 2*ttl}
		if len(told) != 3 || told[0] != lease.NameHeld || told[1] != lease.NameExpired || told[2] != lease.NameFree || at[0] != want[0] || at[1] != want[1] || at[2] != want[2] {
			t.Errorf("%v at %v, want held, expired, free at %v", told, at, want)
		}
	})
}

// ownDone is a context that isn't one of package context's: each child of it that isn't cancelled keeps a goroutine.
type ownDone struct {
	context.Context
	done chan struct{}
}

func (c ownDone) Done() <-chan struct{} { return c.done }

// A watch keeps nothing of the waits that are over.
func TestWatchKeepsNoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk := clocktest.New(0)
		st := memory.New(memory.Options{Clock: clk})
		defer st.Close()
		rec := store.Record{Key: "job"}
		write := func(n int) {
			rec.Owner, rec.Token, rec.TTL, rec.Session, rec.Nonce = fmt.Sprint(n%2), fence.Token(n+1), time.Minute, "", fmt.Sprint(n)
			var err error
			if rec, err = st.Put(t.Context(), rec); err != nil {
				t.Fatal(err)
			}
		}
		write(0)
		var before, told int
		for _, err := range lease.Watch(ownDone{t.Context(), make(chan struct{})}, st, "job", lease.ObserverOptions{Clock: clk}) {
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if told++; told == 1 {
				before = runtime.NumGoroutine()
			}
			if told > 50 {
				break
			}
			write(told)
		}
		synctest.Wait()
		if after := runtime.NumGoroutine(); after > before+5 {
			t.Errorf("%d goroutines after %d changes, %d at first", after, told, before)
		}
	})
}

// An observer with no options looks by the system's clock, and remembers what it was shown without reading it itself.
func TestAnObserverRemembersWhatItWasShown(t *testing.T) {
	inSight(t, func(t *testing.T, o *lease.Observer, st store.Store, write func(string, func(*store.Record))) {
		write("job", alive("n1"))
		rec, err := st.Get(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		if s := o.Saw(rec); s.Standing != lease.NameHeld || s.ExpiresIn != ttl {
			t.Errorf("%+v", s)
		}
		time.Sleep(ttl)
		if s := o.Saw(rec); s.Standing != lease.NameExpired || s.Silent != ttl {
			t.Errorf("shown again: %+v", s)
		}
		rec.Session = ".session/holder/1"
		if s := o.Saw(rec); s.Standing != lease.NameHeld || s.ExpiresIn != ttl || s.Silent != 0 {
			t.Errorf("a session of which nothing is known: %+v", s)
		}
	})
	st := memory.New(memory.Options{})
	defer st.Close()
	if s, err := lease.NewObserver(st, lease.ObserverOptions{}).Status(t.Context(), "job"); err != nil || s.Standing != lease.NameFree {
		t.Errorf("%+v, %v", s, err)
	}
}

// Watch tells within a third of its TTL that the session of a name is dead: the session's renewals wake nobody, and are looked for.
func TestWatchLooksForTheSessionsRenewals(t *testing.T) {
	inSight(t, func(t *testing.T, _ *lease.Observer, st store.Store, write func(string, func(*store.Record))) {
		const session = ".session/holder/1"
		renew := func(nonce string) {
			write(session, func(rec *store.Record) { rec.Owner, rec.Token, rec.TTL, rec.Nonce = "holder", 1, ttl, nonce })
		}
		renew("s1")
		write("job", alive("n1"))
		write("job", func(rec *store.Record) { rec.Session = session })
		const last = ttl/3 + ttl/6
		go func() {
			time.Sleep(last)
			renew("s2") // between two looks, and no more
		}()
		start := time.Now()
		for s, err := range lease.Watch(t.Context(), st, "job", lease.ObserverOptions{Clock: clocktest.New(0)}) {
			if err != nil {
				t.Fatal(err)
			}
			if s.Standing == lease.NameExpired {
				break
			}
		}
		if took := time.Since(start); took < last+ttl || took > last+ttl+ttl/3+ttl/100 {
			t.Errorf("told after %v, want %v to %v", took, last+ttl, last+ttl+ttl/3)
		}
	})
}

// An acquisition keeps nothing of its context once it is over.
func TestAcquireKeepsNoContexts(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		ctx := ownDone{t.Context(), make(chan struct{})}
		var before int
		for i := range 50 {
			l, err := n.Acquire(ctx, "job")
			if err == nil {
				err = l.Release(ctx)
			}
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if i == 0 {
				before = runtime.NumGoroutine()
			}
		}
		if after := runtime.NumGoroutine(); after > before+5 {
			t.Errorf("%d goroutines after 50 acquisitions, %d after the first", after, before)
		}
		close(ctx.done)
	})
}
