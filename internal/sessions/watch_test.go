package sessions

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const ttl = 15 * time.Second

// watcher is a process with a watch, on a store that vouches for no age.
type watcher struct {
	*Watch
	t   *testing.T
	db  *memory.DB
	net *faulty.Store
	clk *clock.Fake
}

// manager is the watcher's, as far as a watch knows it.
type manager struct{ w *watcher }

func (m manager) Store() store.Store { return m.w.net }
func (m manager) Clock() clock.Clock { return m.w.clk }
func (manager) TTL() time.Duration   { return ttl }

func inWorld(t *testing.T, f func(t *testing.T, w *watcher)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &watcher{t: t, db: memory.NewDB(memory.Options{}), clk: clock.NewFake(0)}
		w.net = faulty.Wrap(faulty.Ageless(w.db.Open()), nil)
		defer func() {
			if err := w.net.Close(); err != nil {
				t.Error(err)
			}
		}()
		w.Watch = NewWatch(manager{w})
		f(t, w)
	})
}

// session writes a session's record, anew or over the one that is there.
func (w *watcher) session(key, owner string) {
	w.t.Helper()
	rec, err := store.Load(w.t.Context(), w.db.Open(), key)
	if err == nil {
		rec.Owner, rec.TTL, rec.Token, rec.Nonce = owner, ttl, rec.Token+1, rec.Nonce+"x"
		_, err = w.db.Open().Put(w.t.Context(), rec)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// is fails unless that is what a look says of a session.
func (w *watcher) is(key string, over bool, due time.Duration) {
	w.t.Helper()
	got, next, err := w.Over(w.t.Context(), []string{key, key})
	want := w.clk.Now().Add(due)
	if over {
		want = clock.Never
	}
	if err != nil || len(got) != 1 || got[key] != over || next != want {
		w.t.Errorf("%s: over %v, next in %v, %v; want %t, %v", key, got, next.Sub(w.clk.Now()), err, over, due)
	}
}

// Who looks now and then notices an end: a TTL after the first look that saw the session as it still is. Then it is closed.
func TestWatchRemembersBetweenLooks(t *testing.T) {
	inWorld(t, func(t *testing.T, w *watcher) {
		w.session("a", "p")
		time.Sleep(time.Hour)
		w.is("a", false, ttl)
		w.is("b", true, 0) // not stored
		time.Sleep(ttl / 2)
		w.session("a", "p") // it is renewed
		w.is("a", false, ttl)
		time.Sleep(ttl / 2)
		w.is("a", false, ttl-ttl/2)
		w.is("b", true, 0) // to ask for another one is not to forget this one
		time.Sleep(ttl - ttl/2)
		w.is("a", true, 0)
		if rec, err := w.db.Open().Get(t.Context(), "a"); err != nil || rec.Owner != "" || rec.Past[0].Why != "expired" {
			t.Errorf("not closed: %+v, %v", rec, err)
		}
		w.is("a", true, 0)
		w.session("c", "p")
		w.is("c", false, ttl)
		w.session("c", "") // its process closes it
		w.is("c", true, 0)
		for key, s := range w.seen {
			if !s.over {
				t.Errorf("%s is not remembered as over", key)
			}
		}
	})
}

// A read from before a session's end that comes back after another look has found the end doesn't bring the session back.
func TestWatchIsNotMisledByALateRead(t *testing.T) {
	for how, end := range map[string]func(w *watcher){
		"closed here":       func(w *watcher) { w.is("a", true, 0) },
		"closed by another": func(w *watcher) { w.session("a", ""); w.is("a", true, 0) },
	} {
		t.Run(how, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *watcher) {
				w.session("a", "p")
				w.is("a", false, ttl)
				time.Sleep(ttl)
				rec, err := w.db.Open().Get(t.Context(), "a")
				if err != nil {
					t.Fatal(err)
				}
				end(w)
				if due, over := w.note("a", rec); !over {
					t.Errorf("it is back, and may be over in %v", due.Sub(w.clk.Now()))
				}
			})
		})
	}
}

// A session that is renewed, or closed by another, just before it is to be closed is what it is then.
func TestWatchMeetsAnotherWrite(t *testing.T) {
	for owner, over := range map[string]bool{"p": false, "": true} {
		inWorld(t, func(t *testing.T, w *watcher) {
			w.session("a", "p")
			w.is("a", false, ttl)
			time.Sleep(ttl)
			w.net.SetPlan(func(op faulty.Op) faulty.Fault {
				if op.Kind == faulty.Put {
					w.session("a", owner)
				}
				return faulty.Fault{}
			})
			w.is("a", over, ttl)
		})
	}
}

func TestWatchIsBounded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *watcher) {
		w.session("old", "p")
		w.is("old", false, ttl)
		for i := range maxSeen + 10 {
			key := fmt.Sprint("s", i)
			w.session(key, "p")
			time.Sleep(time.Millisecond)
			if i == maxSeen-5 {
				w.is("s0", false, ttl-w.clk.Now().Sub(w.seen["s0"].Since)) // looked at again: not the oldest any more
			}
			w.is(key, false, ttl)
		}
		if _, kept := w.seen["old"]; kept || len(w.seen) != maxSeen {
			t.Errorf("%d remembered of %d, the oldest one: %t", len(w.seen), maxSeen, kept)
		}
		if _, kept := w.seen["s0"]; !kept {
			t.Error("one that was looked at lately is forgotten")
		}
		w.is("gone", true, 0)
		w.session("new", "p")
		w.is("new", false, ttl)
		if _, kept := w.seen["gone"]; kept || len(w.seen) != maxSeen {
			t.Errorf("%d remembered of %d, the one that is over: %t", len(w.seen), maxSeen, kept)
		}
	})
}

// Many look at the same sessions at the same time, one of them behind a request that hangs. Nobody waits for another.
func TestWatchIsConcurrent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *watcher) {
		var keys []string
		for i := range 20 {
			keys = append(keys, fmt.Sprint("s", i))
			w.session(keys[i], "p")
		}
		hung := false
		w.net.SetPlan(func(op faulty.Op) faulty.Fault {
			if op.Kind == faulty.Get && op.Key == "hung" {
				hung = true
				return faulty.Fault{Drop: true}
			}
			return faulty.Fault{}
		})
		var wg sync.WaitGroup
		wg.Go(func() {
			start := time.Now()
			_, _, err := w.Over(t.Context(), []string{"hung"})
			if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took > ttl/10+time.Millisecond {
				t.Errorf("after %v: %v", took, err)
			}
		})
		synctest.Wait()
		start := time.Now()
		for range 2 {
			for range 8 {
				wg.Go(func() {
					if _, _, err := w.Over(t.Context(), keys); err != nil {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
		}
		if time.Since(start) != 0 || !hung {
			t.Error("they waited for one another")
		}
		time.Sleep(ttl)
		over := make([]map[string]bool, 8)
		for i := range over {
			wg.Go(func() {
				var err error
				if over[i], _, err = w.Over(t.Context(), keys); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for _, o := range over {
			for _, key := range keys {
				if !o[key] {
					t.Errorf("%s is not over for somebody", key)
				}
			}
		}
	})
}

// A close whose outcome is unknown is no close.
func TestWatchDoesNotTrustAnUnknownClose(t *testing.T) {
	inWorld(t, func(t *testing.T, w *watcher) {
		w.session("a", "p")
		w.is("a", false, ttl)
		time.Sleep(ttl)
		w.net.SetPlan(func(op faulty.Op) faulty.Fault {
			return faulty.Fault{Drop: op.Kind == faulty.Put}
		})
		start := time.Now()
		if over, _, err := w.Over(t.Context(), []string{"a"}); !errors.Is(err, store.ErrUnknownOutcome) || time.Since(start) > ttl/10+time.Millisecond {
			t.Errorf("after %v: %v, %v", time.Since(start), over, err)
		}
		w.net.SetPlan(nil)
		w.is("a", true, 0)
	})
}

// prover proves what the test says: that the process of a session has ended.
type prover struct {
	store.Store
	gone chan struct{}
}

func (prover) PutOwn(context.Context, store.Record) (store.Record, error) {
	panic("a watch owns nothing")
}
func (prover) Proof() []*os.File { return nil }

func (p prover) WaitHolder(ctx context.Context, key, version string) (store.Record, error) {
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	var dead atomic.Bool
	go func() {
		select {
		case <-p.gone:
			dead.Store(true)
			cancel()
		case <-limited.Done():
		}
	}()
	rec, err := store.Wait(limited, p.Store, key, version)
	if dead.Load() {
		rec, err = store.Load(ctx, p.Store, key)
		rec.Age = store.AgeGone
	}
	return rec, err
}

// Who waits hears of the end of a process that the store proves, and of a session that is closed, but of no renewal, and of nothing else when it
// has stopped waiting.
func TestFinding_K7_AWatchMourns(t *testing.T) {
	for _, c := range []struct {
		name  string
		do    func(w *watcher, p prover)
		proof bool
		died  bool
	}{
		{"a process ends", func(_ *watcher, p prover) { close(p.gone) }, true, true},
		{"a session is closed", func(w *watcher, _ prover) { w.session("b", "") }, true, true},
		{"a session is renewed", func(w *watcher, _ prover) { w.session("b", "p"); w.session("b", "p") }, true, false},
		{"without proofs", func(w *watcher, _ prover) { w.session("b", "") }, false, false},
		{"the store fails", func(w *watcher, _ prover) {
			w.net.SetPlan(func(faulty.Op) faulty.Fault { return faulty.Fault{Err: errors.New("no")} })
			w.session("b", "")
		}, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *watcher) {
				p := prover{w.net, make(chan struct{})}
				if c.proof {
					w.push = p
				}
				w.session("a", "p")
				w.session("b", "p")
				w.is("a", false, ttl)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				told := make(chan struct{}, 2)
				ended := w.Mourn(ctx, []string{"a", "b"}, func() { told <- struct{}{} })
				synctest.Wait()
				c.do(w, p)
				synctest.Wait()
				if got := len(told) > 0; got != c.died {
					t.Errorf("told of an end: %t, want %t", got, c.died)
				}
				cancel()
				if ended() != c.died {
					t.Errorf("an end: %t, want %t", !c.died, c.died)
				}
			})
		})
	}
}
