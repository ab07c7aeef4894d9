package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

// taker is a way to take a lock.
type taker struct {
	lock, try func(ctx context.Context) (*Hold, error) // try is nil where there is no such thing
}

func asMutex(fair bool) func(t testing.TB, s *lease.Session) taker {
	return func(t testing.TB, s *lease.Session) taker {
		m, err := NewMutex(s, "m", MutexOptions{Fair: fair})
		if err != nil {
			t.Fatal(err)
		}
		return taker{m.Lock, m.TryLock}
	}
}

func asSemaphore(fair bool) func(t testing.TB, s *lease.Session) taker {
	return func(t testing.TB, s *lease.Session) taker {
		sem := semaphore(t, s, 3, fair)
		return taker{
			func(ctx context.Context) (*Hold, error) { return sem.Acquire(ctx, 2) },
			func(ctx context.Context) (*Hold, error) { return sem.TryAcquire(ctx, 2) },
		}
	}
}

func asWriter(t testing.TB, s *lease.Session) taker {
	rw, err := NewRWMutex(s, "rw")
	if err != nil {
		t.Fatal(err)
	}
	return taker{rw.Lock, rw.TryLock}
}

func asReader(t testing.TB, s *lease.Session) taker {
	rw, err := NewRWMutex(s, "rw")
	if err != nil {
		t.Fatal(err)
	}
	return taker{rw.RLock, rw.TryRLock}
}

func asSet(names ...string) func(t testing.TB, s *lease.Session) taker {
	return func(_ testing.TB, s *lease.Session) taker {
		return taker{lock: func(ctx context.Context) (*Hold, error) {
			set, err := AcquireAll(ctx, s, names...)
			if err != nil {
				return nil, err
			}
			return set.Hold, nil
		}}
	}
}

// rivals are two ways to take a lock that exclude each other.
var rivals = []struct {
	name          string
	first, second func(t testing.TB, s *lease.Session) taker
}{
	{"mutex", asMutex(false), asMutex(false)},
	{"fair mutex", asMutex(true), asMutex(true)},
	{"fair mutex and one that isn't", asMutex(true), asMutex(false)},
	{"mutex and a fair one", asMutex(false), asMutex(true)},
	{"semaphore", asSemaphore(false), asSemaphore(false)},
	{"fair semaphore", asSemaphore(true), asSemaphore(true)},
	{"writer and writer", asWriter, asWriter},
	{"writer and reader", asWriter, asReader},
	{"reader and writer", asReader, asWriter},
	{"several names", asSet("m", "x", "y"), asSet("y", "z")},
	{"several names and a mutex", asSet("x", "m"), asMutex(true)},
}

func forRivals(t *testing.T, f func(t *testing.T, w *world, first, second func(t testing.TB, s *lease.Session) taker)) {
	for _, r := range rivals {
		t.Run(r.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) { f(t, w, r.first, r.second) })
		})
	}
}

// Rivals never hold at the same time, who waits gets the lock as soon as it is released, and tokens rise with every grant.
func TestRivalsTakeTurns(t *testing.T) {
	forRivals(t, func(t *testing.T, w *world, first, second func(t testing.TB, s *lease.Session) taker) {
		p, q := w.process(nil), w.process(nil)
		a, b := first(t, p.Session), second(t, q.Session)
		for range 3 {
			held, err := a.lock(t.Context())
			must(t, held, err)
			if b.try != nil {
				if h, err := b.try(t.Context()); !errors.Is(err, lease.ErrHeld) {
					t.Errorf("both hold it: %v, %v", h, err)
				}
			}
			var released time.Time
			returned := make(chan struct{})
			time.AfterFunc(time.Minute, func() {
				defer close(returned)
				released = time.Now()
				if err := held.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
			next, err := b.lock(t.Context())
			<-returned // it may hear of the release before who releases
			must(t, next, err)
			if held.Check() == nil || released.IsZero() {
				t.Fatal("both hold it")
			}
			if d := time.Since(released); d > 10*time.Millisecond {
				t.Errorf("it took %v to hear of the release", d)
			}
			if next.Token() <= held.Token() && next.Sequencer().Name == held.Sequencer().Name { // each name has tokens of its own
				t.Errorf("token %d after %d", next.Token(), held.Token())
			}
			if s := next.Sequencer(); s.Token != next.Token() || s.Holder != q.Manager().Holder() || s.Name == "" {
				t.Errorf("sequencer %+v", s)
			}
			if err := next.Release(t.Context()); err != nil {
				t.Error(err)
			}
			a, b, p, q = b, a, q, p
		}
	})
}

// within is how long after a holder's or waiter's death its share or place is free: the TTL, and where the store vouches for no
// age up to a third of it more, until somebody has looked at its last renewal.
func (w *world) within() time.Duration {
	if w.Ageless {
		return ttl + ttl/3 + 10*time.Millisecond
	}
	return ttl + 10*time.Millisecond
}

func TestHoldersDeathFreesItsShare(t *testing.T) {
	forRivals(t, func(t *testing.T, w *world, first, second func(t testing.TB, s *lease.Session) taker) {
		p, q := w.process(nil), w.process(nil)
		held, err := first(t, p.Session).lock(t.Context())
		must(t, held, err)
		var died time.Time
		time.AfterFunc(time.Minute, func() { died = time.Now(); p.Cut() })
		next, err := second(t, q.Session).lock(t.Context())
		must(t, next, err)
		if held.Check() == nil || held.Context().Err() == nil || died.IsZero() {
			t.Error("both hold it")
		}
		if took := time.Since(died); took > w.within() {
			t.Errorf("it took %v", took)
		}
		if next.Token() <= held.Token() {
			t.Errorf("token %d after %d", next.Token(), held.Token())
		}
		if rec := w.Get(p.Key()); rec.Version == "" || rec.Owner != "" {
			t.Errorf("the share was taken from a session that is still open: %+v", rec)
		}
	})
}

// Who closes its session gives up all its shares. Who waits looks at sessions every third of the TTL.
func TestSessionsCloseIsNoticedByWaiters(t *testing.T) {
	forRivals(t, func(t *testing.T, w *world, first, second func(t testing.TB, s *lease.Session) taker) {
		p, q := w.process(nil), w.process(nil)
		held, err := first(t, p.Session).lock(t.Context())
		must(t, held, err)
		var closed time.Time
		time.AfterFunc(time.Minute, func() {
			closed = time.Now()
			if err := p.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
		next, err := second(t, q.Session).lock(t.Context())
		must(t, next, err)
		if took := time.Since(closed); closed.IsZero() || took > ttl/3+10*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
}

// A watchdog watches holds as it does leases: it bites when one is lost, and not when it is released.
func TestWatchdogOfAHold(t *testing.T) {
	forRivals(t, func(t *testing.T, w *world, first, _ func(t testing.TB, s *lease.Session) taker) {
		p := w.process(nil)
		lock := first(t, p.Session).lock
		var bites []error
		watch := func() *Hold {
			h, err := lock(t.Context())
			must(t, h, err)
			lease.Watchdog(h, func(err error) { bites = append(bites, err) })
			return h
		}
		if err := watch().Release(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(ttl)
		watch()
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(bites) != 0 {
			t.Errorf("bitten: %v", bites)
		}
		p.Cut()
		time.Sleep(ttl)
		synctest.Wait()
		if len(bites) != 1 || !errors.Is(bites[0], lease.ErrLost) {
			t.Errorf("bitten: %v", bites)
		}
	})
}

// Callers who never wait take what a dead holder had: at once where the store vouches for ages, and else a TTL after their
// first try.
func TestPitfall_P6_TryOnlyCallersTakeAnAbandonedShare(t *testing.T) {
	forRivals(t, func(t *testing.T, w *world, first, second func(t testing.TB, s *lease.Session) taker) {
		p, q := w.process(nil), w.process(nil)
		held, err := first(t, p.Session).lock(t.Context())
		must(t, held, err)
		b := second(t, q.Session)
		if b.try == nil {
			return
		}
		p.Cut()
		time.Sleep(2 * ttl)
		start := time.Now()
		for {
			h, err := b.try(t.Context())
			if err == nil {
				if h.Check() != nil || h.Token() <= held.Token() {
					t.Errorf("%v, token %d after %d", h.Check(), h.Token(), held.Token())
				}
				break
			}
			if !errors.Is(err, lease.ErrHeld) {
				t.Fatal(err)
			}
			if time.Since(start) > 10*ttl {
				t.Fatal("it was never taken")
			}
			time.Sleep(ttl / 2)
		}
		want := time.Duration(0)
		if w.Ageless {
			want = ttl // the second and third tries are half a TTL apart
		}
		if took := time.Since(start); took > want {
			t.Errorf("taken after %v of trying, want %v", took, want)
		}
	})
}

// 64 wait; one in their middle dies. The others are served in the order in which they came, and the dead one is skipped
// within the TTL of its death.
func TestPitfall_P10_DeadWaitersAreSkipped(t *testing.T) {
	for name, kind := range map[string]struct {
		as      func(t testing.TB, s *lease.Session) taker
		waiters int
	}{
		"mutex": {asMutex(true), 64}, "semaphore": {asSemaphore(true), 16}, "writer": {asWriter, 16},
	} {
		as, waiters, dying := kind.as, kind.waiters, kind.waiters/3
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				first, err := as(t, w.process(nil).Session).lock(t.Context())
				must(t, first, err)
				dead := w.process(nil)
				var mu sync.Mutex
				var order, want []int
				var skipped time.Time
				var wg sync.WaitGroup
				serve := func(i int, h *Hold) {
					mu.Lock()
					order = append(order, i)
					if i == dying+1 {
						skipped = time.Now()
					}
					mu.Unlock()
					time.Sleep(100 * time.Millisecond)
					if err := h.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
				for i := range waiters {
					p := dead
					if i != dying {
						p, want = w.process(nil), append(want, i)
					}
					lock := as(t, p.Session).lock
					wg.Go(func() {
						h, err := lock(t.Context())
						switch {
						case i == dying && err == nil:
							t.Error("who is cut off was served")
						case i == dying:
						case err != nil:
							t.Errorf("%d: %v", i, err)
						default:
							serve(i, h)
						}
					})
					time.Sleep(20 * time.Millisecond)
				}
				dead.Cut()
				died := time.Now()
				if err := first.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
				wg.Wait()
				if !slices.Equal(order, want) {
					t.Errorf("the order was %v", order)
				}
				if took := skipped.Sub(died); took < ttl/2 || took > w.within() {
					t.Errorf("it was skipped %v after its death", took)
				}
			})
		})
	}
}

// The store may fail for a while, the whole of it or some records: who waits goes on waiting, and is served.
func TestWaitingOutlastsAnOutage(t *testing.T) {
	errRefused := errors.New("connection refused")
	for what, fault := range map[string]faulty.Fault{"refusing": {Err: errRefused}, "silent": {Drop: true}} {
		for _, kind := range []faulty.Kind{faulty.Get, faulty.Put, faulty.Wait} {
			t.Run(fmt.Sprint(what, " ", kind), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					p := w.process(nil)
					held, err := semaphore(t, p.Session, 1, true).Acquire(t.Context(), 1)
					must(t, held, err)
					var outage atomic.Bool
					var q *process
					q = w.process(func(op faulty.Op) faulty.Fault {
						if outage.Load() && op.Kind == kind && op.Key != q.Key() { // its own session lives
							return fault
						}
						return faulty.Fault{}
					})
					var before atomic.Int64
					time.AfterFunc(ttl/2, func() {
						before.Store(int64(q.Net.Count(kind)))
						outage.Store(true)
					})
					time.AfterFunc(ttl/2+time.Minute, func() {
						if n := q.Net.Count(kind) - int(before.Load()); n > 60 {
							t.Errorf("%d requests in a minute of outage", n)
						}
						outage.Store(false)
					})
					time.AfterFunc(40*time.Second, func() {
						if err := held.Release(t.Context()); err != nil {
							t.Error(err)
						}
					})
					got, err := semaphore(t, q.Session, 1, true).Acquire(t.Context(), 1)
					must(t, got, err)
				})
			})
		}
	}
}

// Who only tries doesn't wait for a store that fails.
func TestTryDoesNotWaitForTheStore(t *testing.T) {
	errRefused := errors.New("connection refused")
	inWorld(t, func(t *testing.T, w *world) {
		held, err := semaphore(t, w.process(nil).Session, 1, true).Acquire(t.Context(), 1)
		must(t, held, err)
		q := w.process(nil)
		sem := semaphore(t, q.Session, 1, true)
		fail := func(kind faulty.Kind) error {
			t.Helper()
			q.Plan(func(op faulty.Op) faulty.Fault {
				if kind == op.Kind && op.Key != q.Key() {
					return faulty.Fault{Err: errRefused}
				}
				return faulty.Fault{}
			})
			start := time.Now()
			_, err := sem.TryAcquire(t.Context(), 1)
			if took := time.Since(start); took > time.Millisecond {
				t.Errorf("%s: it took %v", kind, took)
			}
			return err
		}
		if err := fail(faulty.Get); !errors.Is(err, errRefused) {
			t.Errorf("the roster can't be read: %v", err)
		}
		if err := held.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := fail(faulty.Put); !errors.Is(err, errRefused) || errors.Is(err, store.ErrUnknownOutcome) {
			t.Errorf("the roster can't be written: %v", err)
		}
		if err := fail(""); err != nil {
			t.Error(err)
		}
	})
}

// A change of the roster comes with its wake-up. That somebody is served has nobody read all sessions again.
func TestHandOversCostFewReads(t *testing.T) {
	const waiters = 16
	inWorld(t, func(t *testing.T, w *world) {
		first, err := asMutex(true)(t, w.process(nil).Session).lock(t.Context())
		must(t, first, err)
		var all []*process
		var wg sync.WaitGroup
		for range waiters {
			p := w.process(nil)
			all = append(all, p)
			lock := asMutex(true)(t, p.Session).lock
			wg.Go(func() {
				h, err := lock(t.Context())
				must(t, h, err)
				if err := h.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(time.Millisecond)
		}
		reads := func() (n int) {
			for _, p := range all {
				n += p.Net.Count(faulty.Get)
			}
			return n
		}
		time.Sleep(time.Second)
		before := reads()
		if err := first.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if n := reads() - before; n > 8*waiters {
			t.Errorf("%d reads for %d hand-overs", n, waiters)
		}
	})
}
