package lock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ttl = 15 * time.Second

// world is one database and the processes that use it, in virtual time.
type world struct {
	t  *testing.T
	db *memory.DB
}

func inWorld(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, &world{t, memory.NewDB(memory.Options{Clock: clock.NewFake(0)})}) })
}

// process is one, with a session.
type process struct {
	*lease.Session
	m   *lease.Manager
	net *faulty.Store
	clk *clock.Fake
	cut bool
	mu  sync.Mutex
}

func (w *world) process(plan faulty.Plan) *process {
	w.t.Helper()
	p := &process{clk: clock.NewFake(0)}
	p.net = faulty.Wrap(w.db.Open(), func(op faulty.Op) faulty.Fault {
		p.mu.Lock()
		defer p.mu.Unlock()
		switch {
		case p.cut:
			return faulty.Fault{Drop: true}
		case plan != nil:
			return plan(op)
		}
		return faulty.Fault{}
	})
	m, err := lease.NewManager(p.net, lease.Options{TTL: ttl, Clock: p.clk})
	if err != nil {
		w.t.Fatal(err)
	}
	p.m = m
	w.t.Cleanup(func() {
		if err := errors.Join(m.Close(), p.net.Close()); err != nil {
			w.t.Error(err)
		}
	})
	if p.Session, err = m.OpenSession(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// die cuts a process off from the store for good.
func (p *process) die() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
}

func semaphore(t testing.TB, s *lease.Session, limit int, fair bool) *Semaphore {
	t.Helper()
	sem, err := NewSemaphore(s, "licences", SemaphoreOptions{Limit: limit, Fair: fair})
	if err != nil {
		t.Fatal(err)
	}
	return sem
}

func must(t testing.TB, h *Hold, err error) *Hold {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// ledger sees what is held at the same time.
type ledger struct {
	t     testing.TB
	mu    sync.Mutex
	used  int
	limit int
	slots map[int]bool
	seen  map[fence.Token]bool
	grown []string
}

func (l *ledger) enter(h *Hold, weight int, who string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used += weight
	l.grown = append(l.grown, who)
	if l.used > l.limit {
		l.t.Errorf("%d are held of %d", l.used, l.limit)
	}
	if l.slots == nil {
		l.slots = map[int]bool{}
	}
	if l.slots[h.Slot()] {
		l.t.Errorf("slot %d is held twice", h.Slot())
	}
	l.slots[h.Slot()] = true
	if l.seen == nil {
		l.seen = map[fence.Token]bool{}
	}
	if l.seen[h.Token()] {
		l.t.Errorf("token %d was granted twice", h.Token())
	}
	l.seen[h.Token()] = true
}

func (l *ledger) leave(h *Hold, weight int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used -= weight
	delete(l.slots, h.Slot())
}

func TestSemaphoreKeepsItsLimit(t *testing.T) {
	for _, fair := range []bool{false, true} {
		t.Run(fmt.Sprintf("fair=%t", fair), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				book := &ledger{t: t, limit: 5}
				var wg sync.WaitGroup
				for i := range 8 {
					sem := semaphore(t, w.process(nil).Session, 5, fair)
					rng := rand.New(rand.NewPCG(1, uint64(i)))
					wg.Go(func() {
						for range 20 {
							weight := 1 + rng.IntN(3)
							h, err := sem.Acquire(t.Context(), weight)
							if err != nil {
								t.Error(err)
								return
							}
							book.enter(h, weight, "")
							time.Sleep(time.Duration(rng.IntN(1000)) * time.Millisecond)
							book.leave(h, weight)
							if err := h.Release(t.Context()); err != nil {
								t.Error(err)
							}
							if err := h.Check(); !errors.Is(err, ErrReleased) || !errors.Is(context.Cause(h.Context()), ErrReleased) {
								t.Errorf("after the release: %v, %v", err, context.Cause(h.Context()))
							}
						}
					})
				}
				wg.Wait()
			})
		})
	}
}

func TestTrySaysWhoHolds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p, q := w.process(nil), w.process(nil)
		h, err := semaphore(t, p.Session, 2, true).TryAcquire(t.Context(), 2)
		must(t, h, err)
		_, err = semaphore(t, q.Session, 2, true).TryAcquire(t.Context(), 1)
		var held *HeldError
		if !errors.As(err, &held) || !errors.Is(err, ErrHeld) || held.Free != 0 || !slices.Equal(held.Holders, []string{p.m.Owner()}) {
			t.Errorf("%v", err)
		}
	})
}

// 64 wait; one of them dies in the queue. The others are served in the order in which they came, and the dead one is skipped.
func TestFairMutexServesInOrder(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		book := &ledger{t: t, limit: 1}
		first := w.process(nil)
		m, err := NewMutex(first.Session, "m", MutexOptions{Fair: true})
		if err != nil {
			t.Fatal(err)
		}
		h, err := m.Lock(t.Context())
		must(t, h, err)
		var wg sync.WaitGroup
		var want []string
		dead := w.process(nil)
		for i := range 64 {
			p := w.process(nil)
			if i == 20 {
				p = dead
			}
			m, err := NewMutex(p.Session, "m", MutexOptions{Fair: true})
			if err != nil {
				t.Fatal(err)
			}
			if i != 20 {
				want = append(want, fmt.Sprint(i))
			}
			wg.Go(func() {
				h, err := m.Lock(t.Context())
				if i == 20 {
					if err == nil {
						t.Error("who is cut off was served")
					}
					return
				}
				if err != nil {
					t.Errorf("%d: %v", i, err)
					return
				}
				book.enter(h, 1, fmt.Sprint(i))
				time.Sleep(100 * time.Millisecond)
				book.leave(h, 1)
				if err := h.Release(t.Context()); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(20 * time.Millisecond)
		}
		dead.die()
		start := time.Now()
		if err := h.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if !slices.Equal(book.grown, want) {
			t.Errorf("the order was %v", book.grown)
		}
		if took := time.Since(start); took > 3*ttl {
			t.Errorf("it took %v", took)
		}
	})
}

func TestHoldersDeathFreesItsShare(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p, q := w.process(nil), w.process(nil)
		h, err := semaphore(t, p.Session, 1, false).Acquire(t.Context(), 1)
		must(t, h, err)
		p.die()
		start := time.Now()
		got, err := semaphore(t, q.Session, 1, false).Acquire(t.Context(), 1)
		must(t, got, err)
		if h.Check() == nil || h.Context().Err() == nil {
			t.Error("both hold it")
		}
		if took := time.Since(start); took > ttl+ttl/2 {
			t.Errorf("it took %v", took)
		}
		if got.Token() <= h.Token() {
			t.Errorf("token %d after %d", got.Token(), h.Token())
		}
		st := w.db.Open()
		defer st.Close()
		if rec, err := st.Get(t.Context(), p.Key()); err != nil || rec.Owner != "" {
			t.Errorf("the share was taken from a session that is still open: %+v, %v", rec, err)
		}
	})
}

// A session that is renewed just before it would be closed keeps what it holds.
func TestSessionRenewedAtTheLastMomentKeepsItsShare(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process(nil)
		h, err := semaphore(t, p.Session, 1, false).Acquire(t.Context(), 1)
		must(t, h, err)
		st := w.db.Open()
		defer st.Close()
		renewed := 0
		q := w.process(func(op faulty.Op) faulty.Fault {
			if op.Kind == faulty.Put && op.Key == p.Key() { // it is about to be closed
				renewed++
				rec, err := st.Get(t.Context(), p.Key())
				if err == nil {
					rec.Nonce += "x"
					_, err = st.Put(t.Context(), rec)
				}
				if err != nil {
					t.Error(err)
				}
			}
			return faulty.Fault{}
		})
		p.die()
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2*ttl-time.Second)
		defer cancel()
		if _, err := semaphore(t, q.Session, 1, false).Acquire(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if renewed == 0 {
			t.Error("nobody tried to close the session")
		}
	})
}

// Who is stopped while its share is being granted, past the end of its session, does not hold it when it goes on.
func TestSessionThatEndedWhileTheShareWasGranted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var p *process
		p = w.process(func(op faulty.Op) faulty.Fault {
			if op.Kind == faulty.Put && op.Key == prefix+"licences" && p.Check() == nil {
				p.clk.Pause() // no timer fires, and time goes on
				p.clk.Jump(ttl)
			}
			return faulty.Fault{}
		})
		if h, err := semaphore(t, p.Session, 1, false).TryAcquire(t.Context(), 1); !errors.Is(err, lease.ErrLost) {
			t.Errorf("%v, %v", h, err)
		}
		p.clk.Resume()
	})
}

// Who closes its session frees all its shares with it.
func TestSessionsEndFreesItsShares(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p, q := w.process(nil), w.process(nil)
		h, err := semaphore(t, p.Session, 1, true).Acquire(t.Context(), 1)
		must(t, h, err)
		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if h.Check() == nil {
			t.Error("the share outlives its session")
		}
		got, err := semaphore(t, q.Session, 1, true).TryAcquire(t.Context(), 1)
		must(t, got, err)
		if _, err := semaphore(t, p.Session, 1, true).Acquire(t.Context(), 1); !errors.Is(err, lease.ErrLost) && err == nil {
			t.Errorf("acquired under a session that is over: %v", err)
		}
	})
}

func TestReadersShareAndWritersDont(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var mu sync.Mutex
		readers, writers, most := 0, 0, 0
		var lastWriter fence.Token
		var wg sync.WaitGroup
		for i := range 8 {
			rw, err := NewRWMutex(w.process(nil).Session, "rw")
			if err != nil {
				t.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(2, uint64(i)))
			wg.Go(func() {
				for range 20 {
					write := rng.IntN(4) == 0
					lock, n := rw.RLock, &readers
					if write {
						lock, n = rw.Lock, &writers
					}
					h, err := lock(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					*n++
					most = max(most, readers)
					if writers > 1 || writers == 1 && readers > 0 {
						t.Errorf("%d writers and %d readers", writers, readers)
					}
					if h.Token() <= lastWriter {
						t.Errorf("token %d after a writer's %d", h.Token(), lastWriter)
					}
					if write {
						lastWriter = h.Token()
					}
					mu.Unlock()
					time.Sleep(time.Duration(rng.IntN(500)) * time.Millisecond)
					mu.Lock()
					*n--
					mu.Unlock()
					if err := h.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if most < 2 {
			t.Error("no two readers ever shared it")
		}
	})
}

// A writer that waits is not passed by readers who come after it.
func TestWriterIsNotStarved(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var rws []*RWMutex
		for range 3 {
			rw, err := NewRWMutex(w.process(nil).Session, "rw")
			if err != nil {
				t.Fatal(err)
			}
			rws = append(rws, rw)
		}
		r1, err := rws[0].RLock(t.Context())
		must(t, r1, err)
		order := make(chan string, 2)
		var wg sync.WaitGroup
		for i, who := range []string{"writer", "reader"} {
			lock := []func(context.Context) (*Hold, error){rws[1].Lock, rws[2].RLock}[i]
			wg.Go(func() {
				h, err := lock(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				order <- who
				time.Sleep(time.Second)
				_ = h.Release(t.Context())
			})
			time.Sleep(time.Second)
		}
		if _, err := rws[2].TryRLock(t.Context()); !errors.Is(err, ErrHeld) {
			t.Errorf("a reader passed the writer: %v", err)
		}
		_ = r1.Release(t.Context())
		wg.Wait()
		if a, b := <-order, <-order; a != "writer" || b != "reader" {
			t.Errorf("%s, %s", a, b)
		}
	})
}

func TestMismatch(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process(nil)
		h, err := semaphore(t, p.Session, 2, false).Acquire(t.Context(), 2)
		must(t, h, err)
		var mismatch *MismatchError
		if _, err := semaphore(t, p.Session, 3, false).TryAcquire(t.Context(), 1); !errors.As(err, &mismatch) || mismatch.Field != "limit" || !strings.Contains(err.Error(), "limit is 2, not 3") {
			t.Errorf("another limit: %v", err)
		}
		rw, err := NewRWMutex(p.Session, "licences")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rw.TryRLock(t.Context()); !errors.Is(err, ErrMismatch) {
			t.Errorf("another kind: %v", err)
		}
		if err := SetLimit(t.Context(), p.m, "licences", 1); !errors.Is(err, ErrMismatch) {
			t.Errorf("a limit below what is held: %v", err)
		}
		if err := SetLimit(t.Context(), p.m, "licences", 3); err != nil {
			t.Error(err)
		}
		got, err := semaphore(t, p.Session, 3, false).TryAcquire(t.Context(), 1)
		must(t, got, err)
		for what, err := range map[string]error{
			"limit 0":         second(NewSemaphore(p.Session, "x", SemaphoreOptions{})),
			"limit too large": second(NewSemaphore(p.Session, "x", SemaphoreOptions{Limit: MaxShares + 1})),
			"no name":         second(NewRWMutex(p.Session, "")),
			"no session":      second(NewRWMutex(nil, "x")),
			"weight 0":        second(semaphore(t, p.Session, 3, false).TryAcquire(t.Context(), 0)),
			"weight 4":        second(semaphore(t, p.Session, 3, false).TryAcquire(t.Context(), 4)),
			"no names":        second(All(t.Context(), p.Session)),
			"a bad name":      second(All(t.Context(), p.Session, "ok", "")),
		} {
			if err == nil {
				t.Errorf("%s is accepted", what)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

// A roster that can't be read is an error that names it, and is left as it is.
func TestRosterOfOthersIsLeftAlone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process(nil)
		st := w.db.Open()
		defer st.Close()
		for _, data := range []string{"nonsense", `{"v":2}`, `{"v":1,"kind":"semaphore","limit":1,"held":[{"id":"a","weight":2}]}`} {
			cur, err := store.Load(t.Context(), st, prefix+"licences")
			if err != nil {
				t.Fatal(err)
			}
			cur.Data, cur.Token, cur.Nonce = []byte(data), cur.Token+1, "x"
			cur, err = st.Put(t.Context(), cur)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := semaphore(t, p.Session, 1, true).Acquire(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "licences") {
				t.Errorf("%s: %v", data, err)
			}
			if now, _ := st.Get(t.Context(), prefix+"licences"); now.Version != cur.Version {
				t.Errorf("%s was overwritten", data)
			}
		}
	})
}

// A roster with all that fits is still a record that stores take.
func TestFullRosterFits(t *testing.T) {
	r := roster{Format: format, Kind: kindSemaphore, Limit: MaxShares}
	for i := range MaxShares {
		e := entry{ID: strings.Repeat("x", 26), Session: strings.Repeat("s", store.MaxKey), Weight: 1, Slot: i, Token: fence.MaxToken, Since: time.Unix(1e9, 123456789)}
		r.Held = append(r.Held, e)
	}
	rec, err := r.write(store.Record{Key: prefix + "x", Nonce: "n", Token: fence.MaxToken})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Check(rec); err != nil {
		t.Error(err)
	}
}

func TestAllOrNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p, q := w.process(nil), w.process(nil)
		var wg sync.WaitGroup
		for i, p := range []*process{p, q} {
			names := []string{"a", "b", "c", "b"}
			if i == 1 {
				slices.Reverse(names)
			}
			wg.Go(func() {
				for range 20 {
					set, err := All(t.Context(), p.Session, names...)
					if err != nil {
						t.Error(err)
						return
					}
					if set.Lease("c").Check() != nil || set.Check() != nil {
						t.Error("not held")
					}
					time.Sleep(time.Second)
					if err := set.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		other, err := q.Acquire(t.Context(), "c")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := All(ctx, p.Session, "a", "b", "c"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		for _, name := range []string{"a", "b"} {
			l, err := q.TryAcquire(t.Context(), name)
			if err != nil {
				t.Errorf("%s was kept: %v", name, err)
				continue
			}
			_ = l.Release(t.Context())
		}
		_ = other.Release(t.Context())
	})
}
