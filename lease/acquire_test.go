package lease_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/internal/wanted"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

func TestAcquireRelease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{Name: "billing", Info: map[string]string{"version": "7"}})
		l := n.Take("job")
		valid(t, l)
		rec := w.Get("job")
		if rec.Owner != n.Holder() || rec.Token != l.Token() || rec.TTL != ttl || rec.Info["version"] != "7" || rec.Info["pid"] == "" {
			t.Errorf("the record while held: %+v", rec)
		}
		if l.Name() != "job" || l.Holder() != n.Holder() || l.Left() != validity || l.ValidUntil().Sub(n.Clk.Now()) != validity {
			t.Errorf("the lease: key %q, owner %q, %v left", l.Name(), l.Holder(), l.Left())
		}
		time.Sleep(time.Hour)
		valid(t, l)
		release(t, l)
		lostWith(t, l, lease.CauseReleased)
		if errors.Is(l.Check(), lease.ErrLost) {
			t.Error("a lease that its holder released is not lost")
		}
		rec = w.Get("job")
		if rec.Owner != "" || rec.Token != l.Token() || len(rec.Past) != 1 || rec.Past[0].Why != "released" || rec.Past[0].Until.Sub(rec.Past[0].From) != time.Hour {
			t.Errorf("the record after the release: %+v", rec)
		}
		release(t, l)
		puts := n.Net.Count(faulty.Put)
		time.Sleep(time.Hour)
		if n.Net.Count(faulty.Put) != puts {
			t.Error("something is still written after the release")
		}
	})
}

// A release is noticed at once, by one of all who wait.
func TestAcquireHandOverLatency(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l := w.Node(lease.Options{}).Take("job")
		a := w.Node(lease.Options{}).Acquiring(t.Context(), "job")
		time.Sleep(time.Minute)
		a.Pending(t)
		valid(t, l)
		start := time.Now()
		release(t, l)
		if next := a.Wait(t, start, 0); next.Token() <= l.Token() {
			t.Errorf("token %d after %d", next.Token(), l.Token())
		}
	})
}

func TestAcquireWaitsForTheDead(t *testing.T) {
	for _, ageless := range []bool{false, true} {
		t.Run(fmt.Sprintf("ageless=%v", ageless), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.Ageless = ageless
				n := w.Node(lease.Options{})
				l := n.Take("job")
				written := time.Now()
				_ = n.Close()
				lostWith(t, l, lease.CauseClosed)
				time.Sleep(4 * time.Second)
				a := w.Node(lease.Options{}).Acquiring(t.Context(), "job")
				time.Sleep(ttl - 4*time.Second - time.Nanosecond)
				a.Pending(t)
				since := written // the engine knows how long nothing has happened
				if ageless {
					since = written.Add(4 * time.Second) // only the observer does
				}
				next := a.Wait(t, since, ttl+time.Millisecond)
				if past := w.Get("job").Past; len(past) != 1 || past[0].Why != "expired" || next.Token() <= l.Token() {
					t.Errorf("history %+v, token %d after %d", past, next.Token(), l.Token())
				}
			})
		})
	}
}

// Of many managers that want one name, each is served, and one at a time: the world sees to the latter.
func TestAcquireManyManagers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		const nodes, rounds = 20, 3
		var wg sync.WaitGroup
		served := make([]int, nodes)
		for i := range nodes {
			n := w.Node(lease.Options{})
			wg.Go(func() {
				for range rounds {
					l, err := n.Acquire(context.Background(), "job")
					if err != nil {
						t.Error(err)
						return
					}
					w.Acquired(l)
					time.Sleep(7 * time.Second) // a renewal or two
					served[i]++
					valid(t, l)
					release(t, l)
				}
			})
		}
		start := time.Now()
		wg.Wait()
		if d := time.Since(start); d > nodes*rounds*7*time.Second+time.Second {
			t.Errorf("%d terms of 7 s took %v", nodes*rounds, d)
		}
		for i, got := range served {
			if got != rounds {
				t.Errorf("manager %d was served %d times", i, got)
			}
		}
	})
}

func TestTryAcquireHeld(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.Node(lease.Options{}), w.Node(lease.Options{})
		l := a.Take("job")
		time.Sleep(time.Second)
		start := time.Now()
		_, err := b.TryAcquire(t.Context(), "job")
		var held *lease.HeldError
		if !errors.As(err, &held) || !errors.Is(err, lease.ErrHeld) || time.Since(start) != 0 {
			t.Fatalf("TryAcquire: %v after %v", err, time.Since(start))
		}
		if held.Name != "job" || held.Holder != a.Holder() || held.Token != l.Token() || held.ExpiresIn != ttl-time.Second || !held.Since.Equal(start.Add(-time.Second)) {
			t.Errorf("%+v", held)
		}
		release(t, l)
		if next, err := b.TryAcquire(t.Context(), "job"); err != nil || next.Check() != nil {
			t.Errorf("TryAcquire of a free name: %v", err)
		}
	})
}

func TestAcquireTellsWhomItWaitsFor(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var told []string
		a, c := w.Node(lease.Options{}), w.Node(lease.Options{})
		b := w.Node(lease.Options{OnWait: func(e *lease.HeldError) { told = append(told, e.Holder) }})
		l := a.Take("job")
		if err := l.HandOver(t.Context(), c.Holder()); err != nil {
			t.Fatal(err)
		}
		wait := b.Acquiring(t.Context(), "job")
		time.Sleep(time.Second)
		second := c.Take("job")
		time.Sleep(time.Minute)
		release(t, second)
		wait.Wait(t, time.Now(), 0)
		if len(told) != 2 || told[0] != c.Holder() || told[1] != c.Holder() { // first it is offered to c, then c holds it
			t.Errorf("told of %v", told)
		}
	})
}

func TestAcquireContextEnds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l := w.Node(lease.Options{}).Take("job")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		n := w.Node(lease.Options{})
		_, err := n.Acquire(ctx, "job")
		var held *lease.HeldError
		if !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &held) || held.Token != l.Token() || time.Since(start) != time.Minute {
			t.Errorf("Acquire: %v after %v", err, time.Since(start))
		}
		if _, err := n.Acquire(ctx, "free"); !errors.Is(err, context.DeadlineExceeded) || n.Net.Count(faulty.Put) != 0 {
			t.Errorf("Acquire on a context that was over: %v, %d writes", err, n.Net.Count(faulty.Put))
		}
	})
}

// Who has waited for a store in vain is told what the store said, and how the wait ended once.
func TestAcquireSaysWhatTheStoreSaid(t *testing.T) {
	for name, c := range map[string]struct {
		fault faulty.Fault
		says  error // beside the end of the context
	}{
		"refused":   {faulty.Fault{Err: errRefused}, errRefused},
		"no answer": {faulty.Fault{Drop: true}, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.Node(lease.Options{})
				n.Plan(func(faulty.Op) faulty.Fault { return c.fault })
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err := n.Acquire(ctx, "job")
				if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, c.says) {
					t.Errorf("%v: want it to say %v", err, c.says)
				}
				if strings.Count(fmt.Sprint(err), context.DeadlineExceeded.Error()) != 1 {
					t.Errorf("%q says more than once how the wait ended", err)
				}
			})
		})
	}
}

// Whenever the caller gives up, nobody is left owning the name for longer than the TTL.
func TestAcquireCancelledAtEveryStep(t *testing.T) {
	slow := faulty.Fault{Delay: time.Second, ReplyDelay: time.Second}
	plans := map[string]faulty.Plan{
		"slow":        func(faulty.Op) faulty.Fault { return slow },
		"lost reply":  leasetest.Once(faulty.Fault{LoseReply: true}, leasetest.Kind(faulty.Put)),
		"silent loss": leasetest.Once(faulty.Fault{LoseReply: true, Silent: true}, leasetest.Kind(faulty.Put)),
		"late":        leasetest.Once(faulty.Fault{ApplyLate: 3 * time.Second}, leasetest.Kind(faulty.Put)),
		"dropped":     leasetest.Once(faulty.Fault{Drop: true}, leasetest.Kind(faulty.Put)),
		"twice": func(faulty.Op) faulty.Fault {
			return faulty.Fault{Delay: time.Second, ApplyTwice: true, ApplyLate: time.Second}
		},
	}
	for name, plan := range plans {
		t.Run(name, func(t *testing.T) {
			for after := time.Duration(0); after <= 8*time.Second; after += 500 * time.Millisecond {
				inWorld(t, func(t *testing.T, w *world) {
					n := w.Node(lease.Options{})
					n.Plan(plan)
					ctx, cancel := context.WithCancel(t.Context())
					a := n.Acquiring(ctx, "job")
					time.Sleep(after)
					synctest.Wait()
					cancel()
					<-a.Done
					start := time.Now()
					if a.Err == nil {
						valid(t, a.Lease)
						return
					}
					if !errors.Is(a.Err, context.Canceled) {
						t.Errorf("cancelled after %v: %v", after, a.Err)
					}
					// The late write of a claim lands 3 s later at most, and lasts a TTL from then.
					w.Node(lease.Options{}).Acquiring(t.Context(), "job").Wait(t, start, 3*time.Second+ttl+time.Second)
				})
			}
		})
	}
}

// What the caller gave up is withdrawn when the store can be reached, not left to expire.
func TestAcquireWithdrawn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		n.Plan(leasetest.Once(faulty.Fault{LoseReply: true, Silent: true}, leasetest.Kind(faulty.Put)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := n.Acquire(ctx, "job"); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Acquire: %v", err)
		}
		time.Sleep(time.Second)
		if rec := w.Get("job"); rec.Owner != "" || len(rec.Past) != 1 || rec.Past[0].Why != "given up" {
			t.Errorf("the record a second later: %+v", rec)
		}
	})
}

func TestAcquireMisuse(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		s := n.Open()
		before := n.Net.Count(faulty.Get) + n.Net.Count(faulty.Put)
		for _, key := range []string{"", ".session/x", ".", "a\nb", "\xff", string(make([]byte, store.MaxKey+1))} {
			for name, acquire := range map[string]func(context.Context, string, ...lease.AcquireOption) (*lease.Lease, error){
				"Acquire": n.Acquire, "TryAcquire": n.TryAcquire, "Session.Acquire": s.Acquire, "Session.TryAcquire": s.TryAcquire,
			} {
				if l, err := acquire(t.Context(), key); !errors.Is(err, store.ErrInvalid) || l != nil {
					t.Errorf("%s(%q): %v, %v", name, key, l, err)
				}
			}
		}
		if n.Net.Count(faulty.Get)+n.Net.Count(faulty.Put) != before {
			t.Error("the store was asked about an impossible key")
		}
		if !keyspace.Reserved(".session/x") || keyspace.Reserved("session") {
			t.Error("Reserved")
		}
	})
}

// Who goes behind others leaves a free name to them for as long as its patience says, and takes it then.
func TestAcquiringBehindOthersIsPatient(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		l, n := w.Node(lease.Options{}).Take("job"), w.Node(lease.Options{})
		s := n.Open()
		done := make(chan time.Time)
		go func() {
			_, err := s.Acquire(t.Context(), "job", wanted.As(store.KindLease), wanted.Behind(func() time.Duration { return time.Second }))
			if err != nil {
				t.Error(err)
			}
			done <- time.Now()
		}()
		time.Sleep(time.Second)
		start := time.Now()
		release(t, l)
		if took := (<-done).Sub(start); took < time.Second || took > time.Second+10*time.Millisecond {
			t.Errorf("taken %v after its release, want 1s", took)
		}
	})
}
