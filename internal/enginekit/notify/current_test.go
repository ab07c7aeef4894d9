package notify

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/store"
)

// follows has a Wait for "a" end with version 1, so that the server tells of "a" from then on, and returns how many first looks there were.
func follows(t *testing.T, s *server, w *Waiters) (first int) {
	t.Helper()
	ch := s.start(t, w, "a", "")
	synctest.Wait()
	s.set("a", "1")
	within(t, ch, "1", 0)
	s.do(func() { first = s.first })
	return first
}

func (s *server) wantFirst(t *testing.T, want int) {
	t.Helper()
	s.do(func() {
		if s.first != want {
			t.Errorf("%d first looks, want %d", s.first, want)
		}
	})
}

// TestAWaitThatGoesOnReadsNothingFirst: one read for each change, and none for the Wait that follows it.
func TestAWaitThatGoesOnReadsNothingFirst(t *testing.T) {
	run(t, func(t *testing.T, s *server, w *Waiters) {
		first, before := follows(t, s, w), 0
		s.do(func() { before = s.looked })
		for i := 2; i < 102; i++ {
			time.Sleep(time.Second) // nobody waits
			ch := s.start(t, w, "a", fmt.Sprint(i-1))
			time.Sleep(time.Second)
			s.set("a", fmt.Sprint(i))
			within(t, ch, fmt.Sprint(i), 0)
		}
		s.wantFirst(t, first)
		s.do(func() {
			if n := s.looked - before; n > 100+100/5 { // and one more at the intervals of everything
				t.Errorf("%d looks for 100 changes", n)
			}
		})
	})
}

func TestAWaitForAnotherVersionReads(t *testing.T) {
	run(t, func(t *testing.T, s *server, w *Waiters) {
		first := follows(t, s, w)
		within(t, s.start(t, w, "a", "0"), "1", 0)
		s.wantFirst(t, first+1)
	})
}

// What was told while nobody waited is met at once, also where it was told while the last Wait read.
func TestWhatWasToldBetweenTwoWaitsIsMet(t *testing.T) {
	run(t, func(t *testing.T, s *server, w *Waiters) {
		follows(t, s, w)
		s.set("a", "2")
		within(t, s.start(t, w, "a", "1"), "2", 0)

		s.do(func() { s.slow = time.Second })
		ch := s.start(t, w, "a", "2")
		synctest.Wait()
		s.set("a", "3")
		time.Sleep(time.Second / 2)
		s.set("a", "4") // the read that is under way shows 3
		within(t, ch, "3", time.Second)
		within(t, s.start(t, w, "a", "3"), "4", 0)
	})
}

// What nobody could tell, since the subscription had broken, is met at once.
func TestWhatWasNotToldWhileTheSubscriptionWasBrokenIsMet(t *testing.T) {
	run(t, func(t *testing.T, s *server, w *Waiters) {
		follows(t, s, w)
		s.do(func() { close(s.broken) })
		synctest.Wait()
		s.do(func() { s.versions["a"], s.broken = "2", make(chan struct{}) })
		within(t, s.start(t, w, "a", "1"), "2", 0)
	})
}

// A key that isn't listened to any more is read first, and one whose subscription has yet to begin.
func TestAKeyThatIsNotListenedToIsReadFirst(t *testing.T) {
	run(t, func(t *testing.T, s *server, w *Waiters) {
		stays := s.start(t, w, "stays", "")
		follows(t, s, w)
		time.Sleep(linger + 2*air)
		s.do(func() { s.versions["a"] = "2" })
		within(t, s.start(t, w, "a", "1"), "2", 0)

		// Its first look comes before the subscription, and changes unseen after it.
		ch := make(chan outcome, 1)
		go func() {
			rec, err := w.Wait(t.Context(), Want{"b", ""}, func(context.Context) (store.Record, error) {
				s.do(func() { s.versions["b"] = "1" })
				return store.Record{Key: "b"}, nil
			})
			ch <- outcome{rec, err, time.Now()}
		}()
		within(t, ch, "1", 0)
		s.set("stays", "1")
		within(t, stays, "1", 0)
	})
}

// The connection listens, and the server doesn't tell of this key yet.
func TestAKeyThatIsNotToldOfIsReadFirst(t *testing.T) {
	run(t, func(t *testing.T, s *server, w *Waiters) {
		s.do(func() { s.shy = true })
		ch := s.start(t, w, "a", "")
		time.Sleep(time.Minute)
		s.set("a", "1")
		within(t, ch, "1", netMax)
		s.set("a", "2")
		within(t, s.start(t, w, "a", "1"), "2", 0)
	})
}
