package lease_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

func TestPitfall_A1_ARenewalWhoseReplyIsLost(t *testing.T) {
	for name, c := range map[string]struct {
		fault  faulty.Fault
		writes int
	}{
		"landed":           {faulty.Fault{LoseReply: true}, 1},
		"landed, silent":   {faulty.Fault{LoseReply: true, Silent: true}, 2}, // a second copy, which is refused since the first has landed
		"lands beside it":  {faulty.Fault{ApplyLate: 300 * time.Millisecond}, 2},
		"never arrives":    {faulty.Fault{Drop: true}, 2},
		"arrives, silent":  {faulty.Fault{ApplyLate: 100 * time.Millisecond, Silent: true}, 2},
		"arrives too late": {faulty.Fault{ApplyLate: 2 * time.Second, Silent: true}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.Node(lease.Options{})
				l := n.Take("job")
				var sent time.Time
				n.Plan(leasetest.Once(c.fault, func(op faulty.Op) bool {
					if op.Kind == faulty.Put && sent.IsZero() {
						sent = time.Now()
					}
					return op.Kind == faulty.Put
				}))
				before, puts := l.ValidUntil(), n.Net.Count(faulty.Put)
				for l.ValidUntil() == before && l.Check() == nil {
					time.Sleep(10 * time.Millisecond)
					synctest.Wait()
				}
				if got := l.Left() + time.Since(sent); got != validity {
					t.Errorf("the renewal counts for %v from its first send, want %v", got, validity)
				}
				if got := n.Net.Count(faulty.Put) - puts; got != c.writes {
					t.Errorf("%d writes, want %d", got, c.writes)
				}
				time.Sleep(time.Minute)
				valid(t, l)
			})
		})
	}
}

func TestPitfall_A2_AnAcquisitionWhoseReplyIsLost(t *testing.T) {
	for _, silent := range []bool{false, true} {
		inWorld(t, func(t *testing.T, w *world) {
			for name, acquire := range map[string]func(*lease.Manager, context.Context, string, ...lease.AcquireOption) (*lease.Lease, error){
				"Acquire": (*lease.Manager).Acquire, "TryAcquire": (*lease.Manager).TryAcquire,
			} {
				n := w.Node(lease.Options{})
				var claim string
				n.Plan(func(op faulty.Op) faulty.Fault {
					switch {
					case op.Kind != faulty.Put:
						return faulty.Fault{}
					case claim == "":
						claim = op.Record.Nonce
						return faulty.Fault{LoseReply: true, Silent: silent}
					}
					return faulty.Fault{Drop: true} // the first renewal may be due at once
				})
				start := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				l, err := acquire(n.Manager, ctx, name)
				cancel()
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				if took := time.Since(start); took > 7*time.Second || l.Left() != validity-took {
					t.Errorf("%s: after %v %v are left, want them counted from the first send", name, took, l.Left())
				}
				if rec := w.Get(name); rec.Nonce != claim || len(rec.Past) != 0 {
					t.Errorf("%s: claimed again: %+v", name, rec)
				}
			}
		})
	}
}

// A release whose reply is lost is not tried on the hold that followed it.
func TestPitfall_A3_ARetriedReleaseFreesItsOwnTermOnly(t *testing.T) {
	for name, fault := range map[string]faulty.Fault{
		"retried": {LoseReply: true, Silent: true},
		"doubled": {ApplyTwice: true, ApplyLate: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.Node(lease.Options{})
				s := n.Open()
				l := n.Under(s, "job")
				n.Plan(leasetest.Once(fault, leasetest.Frees("job")))
				released := make(chan error)
				go func() { released <- l.Release(context.Background()) }()
				synctest.Wait()
				next := n.Under(s, "job") // the release has landed already
				if err := <-released; err != nil {
					t.Errorf("Release: %v", err)
				}
				time.Sleep(10 * time.Second)
				valid(t, next)
				if rec := w.Get("job"); rec.Owner != n.Holder() || rec.Token != next.Token() {
					t.Errorf("the record of the newer hold: %+v", rec)
				}
			})
		})
	}
}

func TestPitfall_A4_AReleaseOnACancelledContext(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		l := n.Take("job")
		n.Plan(func(faulty.Op) faulty.Fault { return faulty.Fault{Delay: time.Second} })
		if err := l.Release(ctx); err != nil || w.Get("job").Owner != "" {
			t.Errorf("Release: %v, the record %+v", err, w.Get("job"))
		}
		n.Plan(nil)
		l = n.Take("job")
		n.Plan(func(faulty.Op) faulty.Fault { return faulty.Fault{Drop: true} })
		start := time.Now()
		if err := l.Release(ctx); !errors.Is(err, store.ErrUnknownOutcome) || time.Since(start) > ttl/3+time.Millisecond {
			t.Errorf("Release, of which the store hears nothing: %v after %v", err, time.Since(start))
		}
	})
}

func TestPitfall_A5_OneErrorEndsNoRenewal(t *testing.T) {
	for name, fault := range map[string]faulty.Fault{
		"refused": {Err: errRefused}, "dropped": {Drop: true}, "reply lost": {LoseReply: true}, "late": {ApplyLate: time.Second},
		"unreadable": {Err: store.ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.Node(lease.Options{})
				l := n.Take("job")
				events := l.Events()
				for range 3 {
					n.Plan(leasetest.Once(fault, leasetest.Kind(faulty.Put)))
					time.Sleep(8 * time.Second)
				}
				valid(t, l)
				states, closed := drain(events)
				want := []lease.State{lease.StateHeld, lease.StateJeopardy, lease.StateHeld, lease.StateJeopardy, lease.StateHeld, lease.StateJeopardy, lease.StateHeld}
				if closed || !equalStates(states, want...) {
					t.Errorf("events %v", states)
				}
			})
		})
	}
}

// A claim that its caller has given up on arrives late: over a newer hold it does nothing, and on a free name it makes a
// term that nobody uses and that the next one outranks.
func TestPitfall_A6_AWriteThatArrivesAfterItsCallerGaveUp(t *testing.T) {
	for _, taken := range []bool{true, false} {
		inWorld(t, func(t *testing.T, w *world) {
			a, b := w.Node(lease.Options{}), w.Node(lease.Options{})
			r := &resource{t: t}
			old := a.Take("job")
			r.admits(old)
			release(t, old)
			a.Plan(func(op faulty.Op) faulty.Fault {
				if op.Kind == faulty.Put {
					return faulty.Fault{ApplyLate: 30 * time.Second, Silent: true}
				}
				return faulty.Fault{Drop: true}
			})
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := a.Acquire(ctx, "job"); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("Acquire: %v", err)
			}
			var next *lease.Lease
			if taken {
				next = b.Take("job")
				time.Sleep(time.Minute)
				valid(t, next)
				if w.Get("job").Token != next.Token() {
					t.Errorf("the late claim was done: %+v", w.Get("job"))
				}
			} else {
				time.Sleep(30 * time.Second)
				late := w.Get("job")
				if late.Owner != a.Holder() {
					t.Fatalf("the late claim has not landed: %+v", late)
				}
				start := time.Now()
				next = b.Acquiring(t.Context(), "job").Wait(t, start, ttl+time.Millisecond)
				if next.Token() <= late.Token {
					t.Errorf("token %d after %d", next.Token(), late.Token)
				}
			}
			r.admits(next)
			r.refuses(old)
		})
	}
}

// A renewal is on its way when the lease is released: whichever of the two arrives first, the name is free afterwards.
func TestPitfall_A7_RenewalAndReleaseAreOrdered(t *testing.T) {
	for name, fault := range map[string]faulty.Fault{
		"slow renewal":               {Delay: 200 * time.Millisecond, ReplyDelay: 200 * time.Millisecond},
		"late renewal":               {ApplyLate: 300 * time.Millisecond, Silent: true},
		"renewal landed, no reply":   {LoseReply: true, Silent: true},
		"renewal lands beside it":    {ApplyLate: 100 * time.Millisecond},
		"renewal never arrives":      {Drop: true},
		"renewal arrives once again": {ApplyTwice: true, ApplyLate: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			for after := time.Duration(0); after < 500*time.Millisecond; after += 50 * time.Millisecond {
				inWorld(t, func(t *testing.T, w *world) {
					n := w.Node(lease.Options{})
					l := n.Take("job")
					sent, renewal := make(chan struct{}), leasetest.Once(fault, leasetest.Claims("job"))
					announce := sync.OnceFunc(func() { close(sent) })
					n.Plan(func(op faulty.Op) faulty.Fault {
						if leasetest.Frees("job")(op) {
							return faulty.Fault{Delay: 150 * time.Millisecond}
						}
						announce()
						return renewal(op)
					})
					<-sent
					time.Sleep(after)
					release(t, l)
					time.Sleep(2 * time.Second)
					if rec := w.Get("job"); rec.Owner != "" {
						t.Errorf("released %v after a renewal was sent, the name is not free: %+v", after, rec)
					}
				})
			}
		})
	}
}

func TestPitfall_A8_AnOlderTermOfOnesOwnIsNotAdopted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		r := &resource{t: t}
		old := n.Take("job")
		r.admits(old)
		n.Plan(func(op faulty.Op) faulty.Fault {
			if op.Kind == faulty.Put {
				return faulty.Fault{ApplyLate: 20 * time.Second, Silent: true}
			}
			return faulty.Fault{Err: errRefused}
		})
		if err := old.Release(t.Context()); !errors.Is(err, store.ErrUnknownOutcome) {
			t.Fatalf("Release: %v", err)
		}
		n.Plan(nil)
		start := time.Now()
		next := n.Acquiring(t.Context(), "job").Wait(t, start, 0) // at once: it is known for one's own
		if next.Token() <= old.Token() {
			t.Errorf("token %d after %d", next.Token(), old.Token())
		}
		r.admits(next)
		r.refuses(old)
		time.Sleep(25 * time.Second) // the release has arrived
		valid(t, next)
		if rec := w.Get("job"); rec.Owner != n.Holder() || rec.Token != next.Token() {
			t.Errorf("the record: %+v", rec)
		}
		release(t, next)
	})
}
