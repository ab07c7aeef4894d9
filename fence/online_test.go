package fence

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// book is a source that says what it is told to.
type book struct {
	mu    sync.Mutex
	terms map[string]Holding
	asked atomic.Int64
	delay time.Duration
	err   error
}

func (b *book) Set(name, holder string, t Token) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.terms == nil {
		b.terms = map[string]Holding{}
	}
	b.terms[name] = Holding{Holder: holder, Token: t}
}

func (b *book) Current(ctx context.Context, name string) (Holding, error) {
	b.asked.Add(1)
	b.mu.Lock()
	c, err := b.terms[name], b.err
	b.mu.Unlock()
	if b.delay > 0 {
		select {
		case <-time.After(b.delay):
		case <-ctx.Done():
			return Holding{}, context.Cause(ctx)
		}
	}
	return c, err
}

func online(t testing.TB, src Source, maxAge time.Duration) *Online {
	t.Helper()
	o, err := NewOnline(src, OnlineOptions{MaxAge: maxAge})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestOnlineRefuses(t *testing.T) {
	src := &book{}
	src.Set("n", "a", 5)
	src.Set("free", "", 5)
	o := online(t, src, time.Minute)
	for _, c := range []struct {
		s    Sequencer
		says string
	}{
		{Sequencer{"n", "a", 5}, ""},
		{Sequencer{"n", "b", 5}, "token 5 belongs to a"},
		{Sequencer{"n", "a", 4}, "stale fencing token 4: a has token 5"},
		{Sequencer{"n", "a", 6}, "token 6 is of no term that is known: the newest is 5, of a"},
		{Sequencer{"n", "a", 0}, "no fencing token"},
		{Sequencer{"free", "a", 5}, "nobody holds the name since token 5"},
		{Sequencer{"unknown", "a", 5}, "of no term that is known"},
	} {
		err := o.Check(t.Context(), c.s)
		if c.says == "" && err != nil || c.says != "" && (!isStale(err) || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%+v: %v, want %q", c.s, err, c.says)
		}
	}
}

// An answer admits for MaxAge, and no longer, whichever clock goes on; a refusal that can't become wrong is kept.
func TestOnlineAge(t *testing.T) {
	src := &book{}
	src.Set("n", "a", 5)
	o := online(t, src, time.Second)
	var at instant
	o.now = func() instant { return at }
	check := func(s Sequencer, asked int64, refused bool) {
		t.Helper()
		before := src.asked.Load()
		if err := o.Check(t.Context(), s); (err != nil) != refused {
			t.Errorf("%v: %v", s, err)
		}
		if n := src.asked.Load() - before; n != asked {
			t.Errorf("%v asked %d times, want %d", s, n, asked)
		}
	}
	check(Sequencer{"n", "a", 5}, 1, false)
	at = instant{mono: time.Second - 1, wall: time.Second - 1}
	check(Sequencer{"n", "a", 5}, 0, false)
	at = instant{mono: time.Second, wall: -time.Hour} // the time of day was set back
	check(Sequencer{"n", "a", 5}, 1, false)
	at = instant{mono: time.Second, wall: time.Second - time.Hour} // suspended: only the time of day goes on
	check(Sequencer{"n", "a", 5}, 1, false)
	src.Set("n", "b", 6)
	check(Sequencer{"n", "b", 6}, 1, false) // news is asked for at once
	check(Sequencer{"n", "a", 5}, 0, true)
	at = instant{mono: time.Hour, wall: time.Hour}
	check(Sequencer{"n", "a", 5}, 0, true)
}

// A source that has lost what it knew makes no token valid again.
func TestOnlineNeverGoesBack(t *testing.T) {
	src := &book{}
	src.Set("n", "b", 6)
	o := online(t, src, 0)
	if err := o.Check(t.Context(), Sequencer{"n", "b", 6}); err != nil {
		t.Fatal(err)
	}
	src.Set("n", "a", 5)
	if err := o.Check(t.Context(), Sequencer{"n", "c", 7}); !isStale(err) { // it asks
		t.Errorf("%v", err)
	}
	if err := o.Check(t.Context(), Sequencer{"n", "a", 5}); !isStale(err) {
		t.Errorf("an older token came through: %v", err)
	}
}

// A question that was sent after the request arrived answers it, though the time of day was set back meanwhile.
func TestOnlineClockSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &book{delay: time.Second}
		src.Set("n", "a", 5)
		o := online(t, src, 0)
		var wall atomic.Int64
		o.now = func() instant { return instant{wall: time.Duration(wall.Load())} }
		var wg sync.WaitGroup
		check := func(holder string, refused bool) {
			wg.Go(func() {
				if err := o.Check(t.Context(), Sequencer{"n", holder, 5}); isStale(err) != refused || (err != nil) != refused {
					t.Errorf("%s: %v", holder, err)
				}
			})
		}
		check("a", false)
		synctest.Wait()
		wall.Store(int64(time.Hour))
		for range 50 {
			check("a", false)
			check("b", true)
		}
		synctest.Wait()
		wall.Store(0)
		wg.Wait()
		if n := src.asked.Load(); n != 2 {
			t.Errorf("101 checks asked %d times", n)
		}
	})
}

func TestOnlineSharesQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &book{delay: time.Second}
		src.Set("n", "a", 5)
		o := online(t, src, 0)
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if err := o.Check(t.Context(), Sequencer{"n", "a", 5}); err != nil {
					t.Error(err)
				}
			})
			time.Sleep(time.Millisecond)
		}
		wg.Wait()
		// The first asks; those that come meanwhile mustn't take its answer, which is from before, and share the next.
		if n := src.asked.Load(); n != 2 {
			t.Errorf("100 checks asked %d times", n)
		}
	})
}

// Whoever asks for others may go away, and the source may fail: that is nobody's answer.
func TestOnlineFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &book{delay: time.Second}
		src.Set("n", "a", 5)
		o := online(t, src, time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := o.Check(ctx, Sequencer{"n", "a", 5}); !errors.Is(err, context.DeadlineExceeded) || isStale(err) {
				t.Errorf("who asks: %v", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if err := o.Check(t.Context(), Sequencer{"n", "a", 5}); err != nil {
				t.Errorf("who waits: %v", err)
			}
		})
		wg.Wait()
		src.err = errors.New("down")
		if err := o.Check(t.Context(), Sequencer{"m", "a", 5}); !errors.Is(err, src.err) || isStale(err) {
			t.Errorf("a source that is down: %v", err)
		}
	})
}

// Checks that come together while the source is down fail together, and not one after the other.
func TestOnlineSharesFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &book{delay: time.Second, err: errors.New("down")}
		o := online(t, src, 0)
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() {
				if err := o.Check(t.Context(), Sequencer{"n", "a", 5}); !errors.Is(err, src.err) || isStale(err) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := src.asked.Load(); n > 2 {
			t.Errorf("100 checks asked %d times", n)
		}
	})
}

// A source that panics under a server that survives it leaves nobody waiting.
func TestOnlineSourcePanics(t *testing.T) {
	o := online(t, panicking{}, 0)
	for range 2 {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("the source was not asked")
				}
			}()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			t.Error(o.Check(ctx, Sequencer{"n", "a", 5}))
		}()
	}
}

type panicking struct{}

func (panicking) Current(context.Context, string) (Holding, error) { panic("a bug") }

// A question that ends with the context of who asked it fails nobody else: here, the one that came
// too late for the first question, and waits for the next one, which somebody asks who goes away.
func TestOnlineAskerGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &book{delay: time.Second}
		src.Set("n", "a", 5)
		o := online(t, src, 0)
		var wg sync.WaitGroup
		check := func(ctx context.Context, patient bool) {
			wg.Go(func() {
				if err := o.Check(ctx, Sequencer{"n", "a", 5}); (err == nil) != patient {
					t.Errorf("patient %v: %v", patient, err)
				}
			})
		}
		check(t.Context(), true)
		time.Sleep(time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second/2) // in the middle of the next question
		defer cancel()
		var looks atomic.Int64
		o.now = func() instant {
			if looks.Add(1) == 3 { // the late one is about to join the next question
				check(ctx, false)
				time.Sleep(time.Millisecond) // until that is asked
			}
			return now()
		}
		check(t.Context(), true)
		wg.Wait()
		if n := src.asked.Load(); n != 3 {
			t.Errorf("%d questions, want those of all three", n)
		}
	})
}

func TestOnlineForgets(t *testing.T) {
	src := &book{}
	o, err := NewOnline(src, OnlineOptions{MaxAge: time.Hour, Names: 10})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		name := fmt.Sprint(i)
		src.Set(name, "a", 1)
		if err := o.Check(t.Context(), Sequencer{name, "a", 1}); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	o.topics.Range(func(any, any) bool { n++; return true })
	if n > 10 {
		t.Errorf("it remembers %d names", n)
	}
}
