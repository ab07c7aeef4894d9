package lease_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

func TestPitfall_P1_AWaiterLooksAtItsOwnSession(t *testing.T) {
	t.Run("it ends while it waits", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			l := w.Node(lease.Options{}).Take("job")
			n := w.Node(lease.Options{})
			s := n.Open()
			done := make(chan error, 1)
			go func() {
				_, err := s.Acquire(context.Background(), "job")
				done <- err
			}()
			time.Sleep(time.Minute)
			n.Outage.Start()
			time.Sleep(ttl)
			select {
			case err := <-done:
				if !errors.Is(err, lease.ErrLost) {
					t.Errorf("Acquire: %v", err)
				}
			default:
				t.Error("it waits on after its session was lost")
			}
			release(t, l)
			n.Outage.End()
			time.Sleep(time.Minute)
			if rec := w.Get("job"); rec.Owner != "" {
				t.Errorf("elected without a session: %+v", rec)
			}
		})
	})
	t.Run("it is over when the claim lands", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			n := w.Node(lease.Options{})
			s := n.Open()
			n.Plan(leasetest.Once(faulty.Fault{ReplyDelay: time.Second}, leasetest.Claims("job")))
			done := make(chan error)
			go func() {
				_, err := s.Acquire(context.Background(), "job")
				done <- err
			}()
			synctest.Wait()
			n.Clk.Pause() // timers are late, so nothing but a look at the clock tells
			n.Clk.Jump(time.Hour)
			if err := <-done; !errors.Is(err, lease.ErrLost) {
				t.Errorf("Acquire: %v", err)
			}
			n.Clk.Resume()
			start := time.Now()
			w.Node(lease.Options{}).Acquiring(t.Context(), "job").Wait(t, start, ttl) // what landed is nobody's
		})
	})
}

func TestPitfall_P2_TwoLeasesOfOneSession(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		s := n.Open()
		for name, try := range map[string]func(context.Context, string, ...lease.AcquireOption) (*lease.Lease, error){"kept": s.TryAcquire, "own": n.TryAcquire} {
			l, err := try(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			for _, again := range []func(context.Context, string, ...lease.AcquireOption) (*lease.Lease, error){s.TryAcquire, n.TryAcquire} {
				if second, err := again(t.Context(), name); !errors.Is(err, lease.ErrHeld) {
					t.Errorf("%s: the second lease of one name: %v, %v", name, second, err)
				}
			}
			valid(t, l)
			release(t, l)
		}
	})
}

// Two who find the name free write at the same time.
func TestPitfall_P3_EveryWriteIsConditional(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		free := w.Node(lease.Options{}).Take("job")
		release(t, free)
		var waits []*leasetest.Acquisition
		for range 5 {
			n := w.Node(lease.Options{})
			n.Plan(leasetest.Once(faulty.Fault{Delay: time.Second}, leasetest.Claims("job"))) // all have read before one writes
			waits = append(waits, n.Acquiring(t.Context(), "job"))
		}
		time.Sleep(time.Minute)
		holders := 0
		for _, a := range waits {
			select {
			case <-a.Done:
				holders++
				if a.Lease == nil || a.Lease.Holder() != w.Get("job").Owner {
					t.Errorf("%v holds it (%v), the record %+v", a.Lease, a.Err, w.Get("job"))
				}
			default:
			}
		}
		if holders != 1 {
			t.Errorf("%d won", holders)
		}
		for range waits { // let each have its turn, so that all are done
			for _, a := range waits {
				select {
				case <-a.Done:
					release(t, a.Lease)
				default:
				}
			}
			time.Sleep(2 * time.Second)
		}
	})
}

func TestPitfall_P4_OnlyTheHolderRenews(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.Unsafe = true
		n := w.Node(lease.Options{})
		l := n.Take("job")
		time.Sleep(time.Second)
		w.Wipe("job") // the record is another's before the holder has noticed
		other := w.Node(lease.Options{})
		taker := other.Take("job")
		time.Sleep(10 * time.Second)
		lostWith(t, l, lease.CauseTaken)
		if rec := w.Get("job"); rec.Owner != other.Holder() || rec.Token != taker.Token() {
			t.Errorf("the record: %+v", rec)
		}
		_ = other.Close()
		start := time.Now()
		next := w.Node(lease.Options{}).Acquiring(t.Context(), "job").Wait(t, start, ttl) // nobody kept it alive
		if next.Token() <= taker.Token() {
			t.Errorf("token %d after %d", next.Token(), taker.Token())
		}
	})
}

func TestPitfall_P5_WaitingBlocksNothingElse(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		other := w.Node(lease.Options{}).Take("wanted")
		n := w.Node(lease.Options{})
		s := n.Open()
		kept, own := n.Under(s, "kept"), n.Take("own")
		ctx, cancel := context.WithCancel(t.Context())
		n.Acquiring(ctx, "wanted")
		go func() { _, _ = s.Acquire(ctx, "wanted") }()
		n.Plan(func(op faulty.Op) faulty.Fault {
			return faulty.Fault{Drop: op.Key == "wanted"} // and what asks for it hangs
		})
		time.Sleep(time.Hour)
		valid(t, kept)
		valid(t, own)
		valid(t, other)
		start := time.Now()
		release(t, kept)
		release(t, own)
		release(t, n.Take("third"))
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		_ = n.Close()
		if d := time.Since(start); d != 0 {
			t.Errorf("releasing and closing took %v", d)
		}
		cancel()
	})
}

func TestPitfall_P6_TryOnlyCallersTakeAnAbandonedLease(t *testing.T) {
	for name, hold := range map[string]func(n *node) *lease.Lease{
		"own":  func(n *node) *lease.Lease { return n.Take("job") },
		"kept": func(n *node) *lease.Lease { return n.Under(n.Open(), "job") },
	} {
		t.Run(name+", with Age", func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.Node(lease.Options{})
				l := hold(n)
				_ = n.Close()
				time.Sleep(ttl - time.Nanosecond)
				if _, err := w.Node(lease.Options{}).TryAcquire(t.Context(), "job"); !errors.Is(err, lease.ErrHeld) {
					t.Errorf("TryAcquire before the TTL is over: %v", err)
				}
				time.Sleep(time.Nanosecond)
				next, err := w.Node(lease.Options{}).TryAcquire(t.Context(), "job")
				if err != nil || next.Token() <= l.Token() {
					t.Errorf("the first try of a new process: %v", err)
				}
			})
		})
		t.Run(name+", without Age", func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.Ageless = true
				n, other := w.Node(lease.Options{}), w.Node(lease.Options{})
				hold(n)
				_ = n.Close()
				start := time.Now()
				for time.Since(start) < ttl {
					if _, err := other.TryAcquire(t.Context(), "job"); !errors.Is(err, lease.ErrHeld) {
						t.Fatalf("TryAcquire after %v: %v", time.Since(start), err)
					}
					time.Sleep(5 * time.Second)
				}
				if _, err := other.TryAcquire(t.Context(), "job"); err != nil {
					t.Errorf("TryAcquire a TTL after the first: %v", err)
				}
			})
		})
	}
}

func TestPitfall_P7_ALossIsToldOnce(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, w *world, n *node, l *lease.Lease){
		"outage":  func(t *testing.T, w *world, n *node, l *lease.Lease) { n.Outage.Start(); time.Sleep(validity) },
		"expired": func(t *testing.T, w *world, n *node, l *lease.Lease) { n.Clk.Jump(time.Hour) },
		"checked": func(t *testing.T, w *world, n *node, l *lease.Lease) {
			n.Clk.Pause()
			n.Clk.Jump(time.Hour)
			_ = l.Check()
			n.Clk.Resume()
		},
		"taken": func(t *testing.T, w *world, n *node, l *lease.Lease) { w.Wipe("job"); time.Sleep(5 * time.Second) },
		"broken": func(t *testing.T, w *world, n *node, l *lease.Lease) {
			breaks(w, "job", lease.EndTerm{Token: l.Token()})
		},
		"closed": func(t *testing.T, w *world, n *node, l *lease.Lease) { _ = n.Close() },
	} {
		for _, kept := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					var told []lease.Event
					n := w.Node(lease.Options{OnEvent: func(e lease.Event) {
						if e.Name == "job" && e.State != lease.StateHeld && e.State != lease.StateJeopardy {
							told = append(told, e)
						}
					}})
					var l *lease.Lease
					if kept && name != "taken" { // a session's lease isn't looked at while the session lives
						l = n.Under(n.Open(), "job")
					} else {
						l = n.Take("job")
					}
					fired := make(chan struct{})
					context.AfterFunc(l.Context(), func() { close(fired) })
					events := l.Events()
					time.Sleep(time.Second)
					lose(t, w, n, l)
					time.Sleep(6 * time.Second)
					<-fired
					_ = l.Check()
					_ = l.Release(t.Context())
					_ = n.Close()
					time.Sleep(ttl)
					if len(told) != 1 || told[0].State != lease.StateLost || !errors.Is(told[0].Err, lease.ErrLost) {
						t.Errorf("told %+v", told)
					}
					states, closed := drain(events)
					if !closed || len(states) < 2 || states[len(states)-1] != lease.StateLost {
						t.Errorf("events %v, closed: %v", states, closed)
					}
				})
			})
		}
	}
}

// hooked calls before ahead of each write.
type hooked struct {
	*inFlight
	before func(rec store.Record, others int64)
}

func (s *hooked) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	s.before(rec, s.now.Load())
	return s.inFlight.Put(ctx, rec)
}

func TestPitfall_P8_RenewalStopsBeforeTheReleaseIsSent(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		h := w.Host(func(faulty.Op) faulty.Fault { return faulty.Fault{Delay: 400 * time.Millisecond} })
		var last atomic.Pointer[store.Record]
		st := &hooked{inFlight: &inFlight{Store: h.Net}, before: func(rec store.Record, others int64) {
			if rec.Owner == "" && others != 0 {
				t.Error("the release is sent while a renewal is under way")
			}
			last.Store(&rec)
		}}
		l := h.Node(st, lease.Options{}).Take("job")
		for st.all.Load() < 4 { // a read, the claim, a renewal, and the second renewal has just been sent
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
		}
		release(t, l)
		time.Sleep(time.Hour)
		if last.Load().Owner != "" || w.Get("job").Owner != "" {
			t.Errorf("after the release %+v was sent, and the record is %+v", *last.Load(), w.Get("job"))
		}
	})
}

func TestPitfall_P9_AcquiringAgainAfterALoss(t *testing.T) {
	t.Run("let go of", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			n := w.Node(lease.Options{})
			l := n.Take("job")
			for range 3 {
				n.Outage.StartRefusing(errRefused)
				time.Sleep(l.Left() + time.Nanosecond) // the record isn't dead yet
				lostWith(t, l, lease.CauseOutage)
				n.Outage.StartRefusing(store.ErrClosed)
				if err := l.Release(t.Context()); !errors.Is(err, store.ErrClosed) {
					t.Errorf("Release: %v", err)
				}
				n.Outage.End()
				start := time.Now()
				next := n.Acquiring(t.Context(), "job").Wait(t, start, 0)
				rises(t, "lost", l, next)
				time.Sleep(time.Minute)
				valid(t, next)
				l = next
			}
		})
	})
	t.Run("forgotten", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			w.Ageless = true
			n := w.Node(lease.Options{})
			l := n.Take("job")
			n.Outage.Start()
			time.Sleep(validity)
			n.Outage.End()
			start := time.Now()
			rises(t, "lost", l, n.Acquiring(t.Context(), "job").Wait(t, start, ttl+time.Millisecond))
		})
	})
}
