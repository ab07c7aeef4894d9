package lock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/roster"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

var errRefused = errors.New("connection refused")

// on is the plan that gives requests of that kind, or of all kinds if it is "", about a record that fault.
func on(kind faulty.Kind, key string, fault faulty.Fault) faulty.Plan {
	return func(op faulty.Op) faulty.Fault {
		if op.Key == key && (kind == "" || op.Kind == kind) {
			return fault
		}
		return faulty.Fault{}
	}
}

func released(t testing.TB, h *Hold) {
	t.Helper()
	if err := h.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func mutex(t testing.TB, s *lease.Session, name string, fair bool) *Mutex {
	t.Helper()
	m, err := NewMutex(s, name, MutexOptions{Fair: fair})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// A release that the store doesn't answer is unknown after a third of the TTL, again when it is repeated, and done in the background once
// the store is back.
func TestReleaseOfUnknownOutcome(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p, q := w.process(nil), w.process(nil)
		for name, take := range map[string]func(p *process) (*Hold, error){
			"licences": func(p *process) (*Hold, error) { return semaphore(t, p.Session, 1, false).TryAcquire(t.Context(), 1) },
			"m":        func(p *process) (*Hold, error) { return mutex(t, p.Session, "m", false).TryLock(t.Context()) },
		} {
			h, err := take(p)
			must(t, h, err)
			p.Plan(on("", name, faulty.Fault{Drop: true}))
			start := time.Now()
			err = h.Release(t.Context())
			if took := time.Since(start); !errors.Is(err, store.ErrUnknownOutcome) || took > ttl/3+time.Millisecond {
				t.Errorf("%s: %v after %v", name, err, took)
			}
			if again := h.Release(t.Context()); again != err {
				t.Errorf("%s: released again: %v, want %v", name, again, err)
			}
			p.Plan(nil)
			time.Sleep(ttl / 2)
			got, err := take(q)
			released(t, must(t, got, err))
		}
	})
}

// The release of a roster that can't be read any more says so at once.
func TestReleaseOfWhatCantBeRead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process(nil)
		h, err := semaphore(t, p.Session, 1, false).TryAcquire(t.Context(), 1)
		must(t, h, err)
		w.edit("licences", func(rec *store.Record) { rec.Data = []byte("nonsense") })
		start := time.Now()
		if err := h.Release(t.Context()); !errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrUnknownOutcome) || time.Since(start) > 0 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// A share whose session has died, and whose name is something else by now, is released: the name is left to those who have it.
func TestReleaseOfANameOfAnotherKind(t *testing.T) {
	for name, take := range map[string]func(t *testing.T, w *world, q *process){
		"a reader": func(t *testing.T, _ *world, q *process) {
			rw, err := NewRWMutex(q.Session, "licences")
			if err != nil {
				t.Fatal(err)
			}
			h, err := rw.TryRLock(t.Context())
			must(t, h, err)
		},
		"a lease": func(t *testing.T, _ *world, q *process) {
			if _, err := q.TryAcquire(t.Context(), "licences"); err != nil {
				t.Fatal(err)
			}
		},
		"a lease of a version without kinds": func(t *testing.T, w *world, _ *process) {
			w.edit("licences", func(rec *store.Record) {
				*rec = store.Record{Key: rec.Key, Version: rec.Version, Token: rec.Token + 1, Owner: "old", TTL: ttl, Acquired: time.Now()}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				p, q := w.process(nil), w.process(nil)
				h, err := semaphore(t, p.Session, 1, false).TryAcquire(t.Context(), 1)
				must(t, h, err)
				p.Plan(func(faulty.Op) faulty.Fault { return faulty.Fault{Err: errRefused} })
				got, err := semaphore(t, q.Session, 1, false).Acquire(t.Context(), 1) // once the session of p is over
				released(t, must(t, got, err))
				take(t, w, q)
				before := w.Get("licences")
				p.Plan(nil)
				if err := h.Release(t.Context()); err != nil {
					t.Error(err)
				}
				if after := w.Get("licences"); after.Version != before.Version {
					t.Errorf("the release wrote %+v", after)
				}
			})
		})
	}
}

// overDead returns a semaphore on a name whose holder has died, and was seen to be dead.
func (w *world) overDead(t *testing.T, s *lease.Session) *Semaphore {
	t.Helper()
	p := w.process(nil)
	if _, err := p.Manager().TryAcquire(t.Context(), "licences"); err != nil {
		t.Fatal(err)
	}
	p.Cut()
	sem := semaphore(t, s, 1, false)
	if _, err := sem.TryAcquire(t.Context(), 1); !errors.Is(err, store.ErrKind) {
		t.Errorf("beside a holder: %v", err)
	}
	time.Sleep(2 * ttl)
	return sem
}

// An acquisition of a name whose holder has died, given up while its write is on its way, takes the place of that write: it can't land any
// more, also where it would have made the name another kind.
func TestGivenUpOverTheDead(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process(nil)
		sem := w.overDead(t, p.Session)
		p.Plan(on(faulty.Put, "licences", faulty.Fault{ApplyLate: 5 * time.Second, Silent: true}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := sem.Acquire(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("acquired without an answer: %v", err)
		}
		p.Plan(nil)
		time.Sleep(ttl) // the late write has arrived
		if state, err := roster.Load(t.Context(), p.Manager().Store(), "licences"); err != nil || len(state.Held) != 0 {
			t.Errorf("a share that nobody wants: %+v, %v", state, err)
		}
	})
}

// What withdraws such an acquisition leaves a name alone that somebody else has taken meanwhile.
func TestGivenUpAfterAnotherWasQuicker(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var once sync.Once
		p := w.process(nil)
		sem := w.overDead(t, p.Session)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		p.Plan(func(op faulty.Op) faulty.Fault {
			if op.Kind != faulty.Put || op.Key != "licences" {
				return faulty.Fault{}
			}
			once.Do(func() {
				w.edit("licences", func(rec *store.Record) { rec.Owner, rec.Token, rec.Acquired = "quicker", rec.Token+1, time.Now() })
				cancel()
			})
			return faulty.Fault{LoseReply: true}
		})
		if _, err := sem.Acquire(ctx, 1); !errors.Is(err, context.Canceled) {
			t.Fatalf("%v", err)
		}
		before := w.Get("licences")
		p.Plan(nil)
		time.Sleep(ttl / 2)
		if after := w.Get("licences"); after.Owner != "quicker" || after.Version != before.Version {
			t.Errorf("%+v", after)
		}
	})
}

// Who gives up leaves the queue.
func TestWaiterThatGivesUpLeavesTheQueue(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p, q := w.process(nil), w.process(nil)
		h, err := semaphore(t, p.Session, 1, true).TryAcquire(t.Context(), 1)
		must(t, h, err)
		errEnough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errEnough) })
		if _, err := semaphore(t, q.Session, 1, true).Acquire(ctx, 1); !errors.Is(err, errEnough) {
			t.Errorf("%v", err)
		}
		time.Sleep(time.Second)
		if state, err := roster.Load(t.Context(), p.Manager().Store(), "licences"); err != nil || len(state.Waiting) != 0 || len(state.Held) != 1 {
			t.Errorf("%+v, %v", state, err)
		}
	})
}

// Who is served leaves the queue, too, and only those who wait for a fair lock are in one.
func TestQueueHasThoseWhoWait(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p, q, r := w.process(nil), w.process(nil), w.process(nil)
		waiting := func(name string) (all []string) {
			t.Helper()
			state, err := roster.Load(t.Context(), p.Manager().Store(), name)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range state.Waiting {
				all = append(all, s.Owner)
			}
			return all
		}
		for _, fair := range []bool{true, false} {
			h, err := semaphore(t, p.Session, 2, fair).TryAcquire(t.Context(), 2)
			must(t, h, err)
			var served *Hold
			done := make(chan struct{})
			go func() {
				defer close(done)
				served, err = semaphore(t, q.Session, 2, fair).Acquire(t.Context(), 1)
				must(t, served, err)
			}()
			time.Sleep(time.Second)
			if got := waiting("licences"); slices.Equal(got, []string{q.Manager().Holder()}) != fair {
				t.Errorf("fair %v: %v wait", fair, got)
			}
			released(t, h)
			<-done
			if got := waiting("licences"); len(got) != 0 {
				t.Errorf("fair %v: %v wait once they are served", fair, got)
			}
			other, err := semaphore(t, r.Session, 2, fair).TryAcquire(t.Context(), 1)
			released(t, must(t, other, err))
			released(t, served)
		}
		var wg sync.WaitGroup
		h, err := mutex(t, p.Session, "m", true).TryLock(t.Context())
		must(t, h, err)
		for _, waiter := range []*process{q, r} {
			wg.Go(func() {
				got, err := mutex(t, waiter.Session, "m", true).Lock(t.Context())
				released(t, must(t, got, err))
			})
			time.Sleep(time.Second)
		}
		if got := waiting("m"); !slices.Equal(got, []string{q.Manager().Holder(), r.Manager().Holder()}) {
			t.Errorf("%v wait for the mutex", got)
		}
		released(t, h)
		wg.Wait()
	})
}

// A try whose answer is lost looks at what is there, and has the share if it was granted.
func TestTryWithoutAnAnswer(t *testing.T) {
	for what, fault := range map[string]faulty.Fault{"lost": {LoseReply: true}, "deleted": {}} {
		inWorld(t, func(t *testing.T, w *world) {
			p := w.process(nil)
			first, err := semaphore(t, p.Session, 2, false).TryAcquire(t.Context(), 1)
			must(t, first, err)
			last := w.Get("licences")
			var once sync.Once
			p.Plan(func(op faulty.Op) faulty.Fault {
				f := faulty.Fault{}
				if op.Kind == faulty.Put && op.Key == "licences" {
					once.Do(func() {
						if f = fault; what == "deleted" {
							w.Wipe(last.Key)
						}
					})
				}
				return f
			})
			start := time.Now()
			h, err := semaphore(t, p.Session, 2, false).TryAcquire(t.Context(), 1)
			if must(t, h, err); time.Since(start) > 0 {
				t.Errorf("%s: it took %v", what, time.Since(start))
			}
		})
	}
}

// Whoever waits for a store that fails learns why, when it gives up.
func TestGivingUpSaysWhatFailed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, kind := range []faulty.Kind{faulty.Get, faulty.Put} {
			p := w.process(nil)
			p.Plan(on(kind, "licences", faulty.Fault{Err: errRefused}))
			if h, err := semaphore(t, p.Session, 1, false).TryAcquire(t.Context(), 1); !errors.Is(err, errRefused) {
				t.Errorf("a try: %s: %v, %v", kind, h, err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), ttl)
			if _, err := semaphore(t, p.Session, 1, false).Acquire(ctx, 1); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, errRefused) {
				t.Errorf("%s: %v", kind, err)
			}
			cancel()
		}
	})
}

// A set ends with any of its leases, and gives all of them back.
func TestSetEndsWithAnyOfItsLeases(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p, q := w.process(nil), w.process(nil)
		set, err := AcquireAll(t.Context(), p.Session, "a", "b")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := q.Manager().Break(t.Context(), "b", lease.EndTerm{Token: set.Lease("b").Token(), By: "ada"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(ttl)
		if err := set.Check(); !errors.Is(err, lease.ErrLost) || !errors.Is(context.Cause(set.Context()), lease.ErrLost) || set.ValidUntil() != clock.Ended || set.Left() != 0 {
			t.Errorf("%v, %v, valid until %v, %v left", err, context.Cause(set.Context()), set.ValidUntil(), set.Left())
		}
		if set.Lease("a").Check() != nil {
			t.Error("a was lost, too")
		}
		_ = set.Release(t.Context()) // says that b was lost
		if _, err := q.TryAcquire(t.Context(), "a"); err != nil {
			t.Error(err)
		}
	})
}

// The first write of a name that withdraws an acquisition says what the name is, and keeps its tokens rising.
func TestWithdrawnFirstAcquisitionSaysTheKind(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		ahead := fence.Token(time.Now().Add(time.Hour).UnixMilli())
		w.oldRoster(t, roster.Semaphore, 1, ahead)
		p := w.process(nil)
		p.Plan(on(faulty.Put, "x", faulty.Fault{Drop: true}))
		sem, err := NewSemaphore(p.Session, "x", SemaphoreOptions{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := sem.Acquire(ctx, 1); err == nil {
			t.Fatal("acquired without an answer")
		}
		p.Plan(nil)
		time.Sleep(ttl)
		if rec := w.Get("x"); rec.Kind != store.KindSemaphore || rec.Token < ahead {
			t.Errorf("%+v", rec)
		}
	})
}

// A downgrade that landed, and of which its caller never hears, is taken back: nobody reads by it.
func TestADowngradeThatLandedIsTakenBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p, q := w.process(nil), w.process(nil)
		mine := rw(t, p.Session)
		writer, err := mine.Lock(t.Context())
		must(t, writer, err)
		var landed atomic.Bool
		p.Plan(func(op faulty.Op) faulty.Fault {
			switch {
			case op.Key != "rw":
				return faulty.Fault{}
			case op.Kind == faulty.Put && landed.CompareAndSwap(false, true):
				return faulty.Fault{LoseReply: true}
			}
			return faulty.Fault{Drop: landed.Load()}
		})
		ctx, cancel := context.WithTimeout(t.Context(), ttl)
		defer cancel()
		if h, err := mine.Downgrade(ctx, writer); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%v, %v", h, err)
		}
		p.Plan(nil)
		ctx, cancel = context.WithTimeout(t.Context(), ttl)
		defer cancel()
		h, err := rw(t, q.Session).Lock(ctx)
		must(t, h, err)
	})
}

// Who gives up waiting writes nothing more, and is told why.
func TestWaiterThatGivesUpWritesNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p, q := w.process(nil), w.process(nil)
		h, err := semaphore(t, p.Session, 1, false).TryAcquire(t.Context(), 1)
		must(t, h, err)
		errEnough := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(errEnough) })
		gets, puts := q.Net.Count(faulty.Get), q.Net.Count(faulty.Put)
		_, err = semaphore(t, q.Session, 1, false).Acquire(ctx, 1)
		held := new(HeldError)
		if !errors.Is(err, errEnough) || !errors.As(err, &held) || err.Error() != "acquire licences: enough\n"+held.Error() {
			t.Errorf("%q, want why it gave up, and who has the share", err)
		}
		if gets, puts = q.Net.Count(faulty.Get)-gets, q.Net.Count(faulty.Put)-puts; gets > 4 || puts > 0 {
			t.Errorf("%d reads and %d writes", gets, puts)
		}
	})
}
