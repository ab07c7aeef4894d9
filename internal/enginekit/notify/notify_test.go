package notify

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/store"
)

// server is a Source whose versions a test sets.
type server struct {
	mu       sync.Mutex
	versions map[string]string
	readErr  error
	deaf     bool
	mute     bool          // it loses notifications
	shy      bool          // it tells of no key
	broken   chan struct{} // closed to end the subscription
	slow     time.Duration // a read takes so long, after it has looked
	reads    int
	looked   int // at wants
	first    int // looks of Waits' own
	tell     func(string)
	heeds    map[string]bool // keys that it tells of
	begun    int             // subscriptions
	ended    int
}

func newServer() *server {
	return &server{versions: map[string]string{}, broken: make(chan struct{})}
}

func (s *server) Read(ctx context.Context, wants []Want) ([]Result, error) {
	s.mu.Lock()
	s.reads++
	s.looked += len(wants)
	results, err := make([]Result, len(wants)), s.readErr
	for i, w := range wants {
		if v := s.versions[w.Key]; v != w.Version {
			results[i] = Result{Changed: true, Rec: store.Record{Key: w.Key, Version: v, Info: map[string]string{"v": v}}}
		}
	}
	slow := s.slow
	s.mu.Unlock()
	if slow == 0 { // a timer that is due as it is made crashes the race detector in virtual time, now and then (Go 1.26)
		return results, err
	}
	select {
	case <-time.After(slow):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return results, err
}

// heed has it tell of what the ear names.
func (s *server) heed(ear Ear) {
	begin, end := ear.Next()
	if s.shy {
		begin = nil
	}
	s.do(func() {
		for _, key := range begin {
			s.heeds[key] = true
		}
		for _, key := range end {
			delete(s.heeds, key)
		}
	})
	for _, key := range begin {
		ear.Covers(key)
	}
}

func (s *server) Listen(ctx context.Context, ear Ear) error {
	s.mu.Lock()
	if s.deaf {
		s.mu.Unlock()
		return ErrDeaf
	}
	s.tell, s.begun, s.heeds = ear.Changed, s.begun+1, map[string]bool{}
	broken := s.broken
	s.mu.Unlock()
	ear.Up()
	for more := true; more; {
		s.heed(ear)
		select {
		case <-ear.More():
		case <-time.After(air):
		case <-ctx.Done():
			more = false
		case <-broken:
			more = false
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tell, s.ended = nil, s.ended+1
	return errors.New("the connection broke")
}

func (s *server) set(key, version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.versions[key] = version
	if s.tell != nil && !s.mute && s.heeds[key] {
		s.tell(key)
	}
}

func (s *server) do(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// wait waits as an engine does: its first look is one of its own.
func (s *server) wait(ctx context.Context, w *Waiters, key, version string) (store.Record, error) {
	return w.Wait(ctx, Want{key, version}, func(context.Context) (store.Record, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.first++
		return store.Record{Key: key, Version: s.versions[key]}, nil
	})
}

// outcome is how a Wait ended, and when.
type outcome struct {
	rec store.Record
	err error
	at  time.Time
}

func (s *server) start(t *testing.T, w *Waiters, key, version string) <-chan outcome {
	ch := make(chan outcome, 1)
	go func() {
		rec, err := s.wait(t.Context(), w, key, version)
		ch <- outcome{rec, err, time.Now()}
	}()
	return ch
}

func run(t *testing.T, f func(t *testing.T, s *server, w *Waiters)) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		w := New(s)
		w.clk = clocktest.New(0)
		defer w.Close()
		f(t, s, w)
	})
}

// within checks that a Wait ended with that version, and not later than that after now.
func within(t *testing.T, ch <-chan outcome, version string, limit time.Duration) {
	t.Helper()
	now := time.Now()
	o := <-ch
	if o.err != nil || o.rec.Version != version {
		t.Errorf("the Wait returned version %q and %v, want %q", o.rec.Version, o.err, version)
	}
	if took := o.at.Sub(now); took > limit {
		t.Errorf("the Wait took %v, want %v at most", took, limit)
	}
}

func TestANotificationWakesAtOnce(t *testing.T) {
	run(t, func(t *testing.T, s *server, w *Waiters) {
		for i := range 5 {
			a, b := s.start(t, w, "a", ""), s.start(t, w, "a", "")
			other := s.start(t, w, fmt.Sprint("other", i), "")
			time.Sleep(time.Minute)
			synctest.Wait()
			version := fmt.Sprint(i + 1)
			s.set("a", version)
			within(t, a, version, 0)
			within(t, b, version, 0)
			s.set("a", "")
			select {
			case o := <-other:
				t.Fatalf("a Wait for another key ended: %+v", o)
			default:
			}
		}
	})
}

func TestALostNotificationOnlyDelays(t *testing.T) {
	run(t, func(t *testing.T, s *server, w *Waiters) {
		s.do(func() { s.mute = true })
		ch := s.start(t, w, "a", "")
		time.Sleep(time.Minute)
		s.set("a", "1")
		within(t, ch, "1", netMax)
	})
}

// TestTrafficDoesNotStarveTheNet: reads for what is told come and go, and everything is looked at in its time all the same.
func TestTrafficDoesNotStarveTheNet(t *testing.T) {
	run(t, func(t *testing.T, s *server, w *Waiters) {
		ch := s.start(t, w, "quiet", "")
		busy := s.start(t, w, "busy", "")
		time.Sleep(time.Second)
		s.do(func() { s.versions["quiet"] = "1" }) // and nobody is told
		from := time.Now()
		for {
			s.do(func() { s.tell("busy") })
			select {
			case o := <-ch:
				if took := o.at.Sub(from); took > netMax {
					t.Errorf("it took %v", took)
				}
				s.set("busy", "1")
				<-busy
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
}

func TestPollsWithoutASubscription(t *testing.T) {
	run(t, func(t *testing.T, s *server, w *Waiters) {
		s.do(func() { s.deaf = true })
		ch := s.start(t, w, "a", "")
		time.Sleep(time.Hour)
		s.do(func() {
			if s.reads > 4900 || s.begun != 0 {
				t.Errorf("%d reads in an hour, %d subscriptions", s.reads, s.begun)
			}
		})
		s.set("a", "1")
		within(t, ch, "1", pollMax)
		// Somebody new is not made to wait for the end of a long pause.
		old := s.start(t, w, "b", "")
		time.Sleep(time.Minute)
		ch = s.start(t, w, "a", "1")
		time.Sleep(pollMin)
		s.set("a", "2")
		within(t, ch, "2", 2*pollMin)
		s.set("b", "1")
		<-old
	})
}

func TestASubscriptionThatBeginsAnewMissesNothing(t *testing.T) {
	run(t, func(t *testing.T, s *server, w *Waiters) {
		ch := s.start(t, w, "a", "")
		time.Sleep(time.Minute)
		s.do(func() {
			close(s.broken)
			s.broken = make(chan struct{})
			s.mute = true // all that is told now is lost
		})
		synctest.Wait()
		s.set("a", "1")
		within(t, ch, "1", 2*retryMin)
		ch = s.start(t, w, "a", "1")
		time.Sleep(time.Minute)
		s.do(func() { s.mute = false })
		s.set("a", "2")
		within(t, ch, "2", 0)
	})
}

// TestNobodyGetsWhatWasReadBefore: a read that was under way when a Wait began may show an older version than the Wait knows.
func TestNobodyGetsWhatWasReadBefore(t *testing.T) {
	run(t, func(t *testing.T, s *server, w *Waiters) {
		s.set("a", "1")
		early := s.start(t, w, "a", "1")
		time.Sleep(time.Minute)
		synctest.Wait()
		s.do(func() { s.slow = time.Second })
		s.do(func() { s.tell("a") }) // a read begins, which sees version 1 and takes a second
		synctest.Wait()
		s.do(func() { s.versions["a"] = "2" })
		late := s.start(t, w, "a", "2")
		time.Sleep(time.Minute)
		select {
		case o := <-late:
			t.Fatalf("the Wait for what follows version 2 returned version %q, %v", o.rec.Version, o.err)
		default:
		}
		within(t, early, "2", 0)
		s.set("a", "3")
		within(t, late, "3", 2*time.Second)
	})
}

func TestAReadThatFailsForLongEndsTheWaits(t *testing.T) {
	run(t, func(t *testing.T, s *server, w *Waiters) {
		boom := errors.New("boom")
		ch := s.start(t, w, "a", "")
		time.Sleep(time.Minute)
		s.do(func() { s.readErr = boom; s.tell("a") })
		time.Sleep(2 * time.Second)
		s.do(func() { s.readErr = nil })
		s.set("a", "1")
		within(t, ch, "1", pollMax) // it had failed for a short time only
		ch = s.start(t, w, "a", "1")
		time.Sleep(time.Minute)
		s.do(func() { s.readErr = boom; s.tell("a") })
		from := time.Now()
		o := <-ch
		if took := o.at.Sub(from); !errors.Is(o.err, boom) || took < 3*time.Second || took > 10*time.Second {
			t.Errorf("after %v: %v", took, o.err)
		}
	})
}

func TestTheSubscriptionEndsSomeTimeAfterTheLastWait(t *testing.T) {
	run(t, func(t *testing.T, s *server, w *Waiters) {
		for i := range 3 {
			ch := s.start(t, w, "a", fmt.Sprint(i))
			time.Sleep(time.Second)
			s.set("a", fmt.Sprint(i+1))
			<-ch
			time.Sleep(linger / 2)
		}
		s.do(func() {
			if s.begun != 1 || s.ended != 0 {
				t.Errorf("%d subscriptions, %d ended, while it was used now and then", s.begun, s.ended)
			}
		})
		time.Sleep(2 * linger)
		s.do(func() {
			if s.begun != s.ended {
				t.Errorf("%d subscriptions, %d ended, long after the last use", s.begun, s.ended)
			}
			s.reads = 0
		})
		time.Sleep(time.Hour)
		s.do(func() {
			if s.reads != 0 {
				t.Errorf("%d reads, and nobody waits", s.reads)
			}
		})
		ch := s.start(t, w, "a", "3")
		time.Sleep(time.Second)
		s.set("a", "4")
		within(t, ch, "4", 0)
	})
}

func TestWantsAreReadInBatches(t *testing.T) {
	run(t, func(t *testing.T, s *server, w *Waiters) {
		const n = 2*batch + 1
		var all []<-chan outcome
		for i := range n {
			all = append(all, s.start(t, w, fmt.Sprint("k", i), ""))
		}
		time.Sleep(time.Minute)
		for i := range n {
			s.do(func() { s.versions[fmt.Sprint("k", i)] = "1" })
		}
		s.do(func() { s.reads, s.looked = 0, 0 })
		for _, ch := range all {
			within(t, ch, "1", netMax)
		}
		s.do(func() {
			if s.reads != 3 || s.looked != n {
				t.Errorf("%d reads of %d wants, want 3 of %d", s.reads, s.looked, n)
			}
		})
	})
}

func TestEachCallerGetsARecordOfItsOwn(t *testing.T) {
	run(t, func(t *testing.T, s *server, w *Waiters) {
		a, b := s.start(t, w, "a", ""), s.start(t, w, "a", "")
		time.Sleep(time.Minute)
		s.set("a", "1")
		ra, rb := (<-a).rec, (<-b).rec
		ra.Info["v"] = "changed"
		if rb.Info["v"] != "1" {
			t.Error("two callers share a map")
		}
	})
}

func TestCloseAndCancel(t *testing.T) {
	run(t, func(t *testing.T, s *server, w *Waiters) {
		ch := s.start(t, w, "a", "")
		cause := errors.New("stop")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Minute, func() { cancel(cause) })
		if _, err := s.wait(ctx, w, "a", ""); !errors.Is(err, cause) {
			t.Errorf("cancelled: %v", err)
		}
		s.do(func() { s.slow = time.Hour; s.tell("a") }) // Close doesn't wait for a read to succeed
		synctest.Wait()
		w.Close()
		if o := <-ch; !errors.Is(o.err, store.ErrClosed) {
			t.Errorf("closed: %v", o.err)
		}
		if _, err := s.wait(t.Context(), w, "a", ""); !errors.Is(err, store.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
		w.Close()
	})
}
