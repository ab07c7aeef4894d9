package fence

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

var errDown = errors.New("down")

// unreadable are marks that can't be read.
type unreadable struct{ Marks }

func (unreadable) Load(context.Context, string) (Mark, error) { return Mark{}, errDown }

// A guard that can't learn what it needs to know admits nothing: marks that can't be read, a wait for another request's question or for
// the term before that is given up.
func TestWhatIsNotKnownIsNotAdmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := Sequencer{"n", "a", 5}
		o, err := NewOffline(unreadable{})
		if err != nil {
			t.Fatal(err)
		}
		if err := o.Check(t.Context(), s); !errors.Is(err, errDown) {
			t.Errorf("marks that can't be read: %v", err)
		}

		src := &book{delay: time.Minute}
		src.Set("n", "a", 5)
		asking := online(t, src, 0)
		go func() { _ = asking.Check(t.Context(), s) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := asking.Check(ctx, s); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("given up while another asks: %v", err)
		}

		o, err = NewOffline(&memoryMarks{})
		if err != nil {
			t.Fatal(err)
		}
		stop := make(chan struct{})
		go func() {
			_ = o.Do(t.Context(), s, func(context.Context) error { <-stop; return nil })
		}()
		synctest.Wait()
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := o.Check(ctx, Sequencer{"n", "b", 6}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("given up while the term before works: %v", err)
		}
		close(stop)
		time.Sleep(time.Hour)
	})
}

// Do calls nothing that its guard refuses, and returns what was returned to it.
func TestDo(t *testing.T) {
	src := &book{}
	src.Set("n", "a", 5)
	g := online(t, src, 0)
	called := 0
	f := func(context.Context) error { called++; return errDown }
	if err := Do(t.Context(), g, Sequencer{"n", "a", 4}, f); !isStale(err) || called != 0 {
		t.Errorf("stale: %v, called %d times", err, called)
	}
	if err := Do(t.Context(), g, Sequencer{"n", "a", 5}, f); !errors.Is(err, errDown) || called != 1 {
		t.Errorf("current: %v, called %d times", err, called)
	}
}

// A sequencer of another resource is refused.
func TestOf(t *testing.T) {
	s := Sequencer{"n", "a", 5}
	if err := s.Of("n"); err != nil {
		t.Error(err)
	}
	if err := s.Of("m"); !errors.Is(err, ErrOtherName) {
		t.Errorf("of another: %v", err)
	}
}

// Arguments that make no guard are refused, and none is returned.
func TestNoGuard(t *testing.T) {
	src := &book{}
	for name, guard := range map[string]func() error{
		"no source":     func() error { _, err := NewOnline(nil, OnlineOptions{}); return err },
		"age below 0":   func() error { _, err := NewOnline(src, OnlineOptions{MaxAge: -1}); return err },
		"names below 0": func() error { _, err := NewOnline(src, OnlineOptions{Names: -1}); return err },
		"no marks":      func() error { _, err := NewOffline(nil); return err },
		"no key":        func() error { _, err := (&Keys{}).Sign(Sequencer{"n", "a", 5}); return err },
		"a short key":   func() error { _, err := NewKeys([]byte("short")); return err },
	} {
		if guard() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
