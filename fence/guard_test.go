package fence

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
	terms map[string]Current
	asked atomic.Int64
	delay time.Duration
	err   error
}

func (b *book) set(name, holder string, t Token) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.terms == nil {
		b.terms = map[string]Current{}
	}
	b.terms[name] = Current{Holder: holder, Token: t}
}

func (b *book) Current(ctx context.Context, name string) (Current, error) {
	b.asked.Add(1)
	b.mu.Lock()
	c, err := b.terms[name], b.err
	b.mu.Unlock()
	if b.delay > 0 {
		select {
		case <-time.After(b.delay):
		case <-ctx.Done():
			return Current{}, context.Cause(ctx)
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

func marks(t testing.TB) *File {
	t.Helper()
	m, err := OpenFile(filepath.Join(t.TempDir(), "marks"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func offline(t testing.TB, m Marks) *Offline {
	t.Helper()
	o, err := NewOffline(m)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func isStale(err error) bool {
	var stale *StaleError
	return errors.As(err, &stale) && errors.Is(err, ErrStale)
}

// The story that the number is for. R1 is sent under version 1 and delayed; the lease is lost, taken by another, who does R2,
// and lost back to the first holder; R1 arrives, from the very holder of the lease, and is refused.
func TestDelayedRequestOfAnEarlierTerm(t *testing.T) {
	src := &book{}
	for name, g := range map[string]Guard{
		"online": online(t, src, 0), "online, cached": online(t, src, time.Minute), "offline": offline(t, marks(t)),
	} {
		t.Run(name, func(t *testing.T) {
			resource := "resource of " + name
			r1 := Sequencer{resource, "a", 1}
			src.set(resource, "b", 2)
			if err := g.Check(t.Context(), Sequencer{resource, "b", 2}); err != nil {
				t.Fatal(err)
			}
			src.set(resource, "a", 3)
			if err := g.Check(t.Context(), r1); !isStale(err) {
				t.Errorf("R1 came through: %v", err)
			}
			if err := g.Check(t.Context(), Sequencer{resource, "a", 3}); err != nil {
				t.Errorf("the holder's present term: %v", err)
			}
			if err := g.Check(t.Context(), r1); !isStale(err) {
				t.Errorf("R1 came through: %v", err)
			}
		})
	}
}

func TestOnlineRefuses(t *testing.T) {
	src := &book{}
	src.set("n", "a", 5)
	src.set("free", "", 5)
	o := online(t, src, time.Minute)
	for _, c := range []struct {
		s    Sequencer
		says string
	}{
		{Sequencer{"n", "a", 5}, ""},
		{Sequencer{"n", "b", 5}, "token 5 belongs to a"},
		{Sequencer{"n", "a", 4}, "stale fencing token 4: a has been here with token 5"},
		{Sequencer{"n", "a", 6}, "token 6 is of no term that is known: the newest is 5"},
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
	src.set("n", "a", 5)
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
	src.set("n", "b", 6)
	check(Sequencer{"n", "b", 6}, 1, false) // news is asked for at once
	check(Sequencer{"n", "a", 5}, 0, true)
	at = instant{mono: time.Hour, wall: time.Hour}
	check(Sequencer{"n", "a", 5}, 0, true)
}

// A source that has lost what it knew makes no token valid again.
func TestOnlineNeverGoesBack(t *testing.T) {
	src := &book{}
	src.set("n", "b", 6)
	o := online(t, src, 0)
	if err := o.Check(t.Context(), Sequencer{"n", "b", 6}); err != nil {
		t.Fatal(err)
	}
	src.set("n", "a", 5)
	if err := o.Check(t.Context(), Sequencer{"n", "c", 7}); !isStale(err) { // it asks
		t.Errorf("%v", err)
	}
	if err := o.Check(t.Context(), Sequencer{"n", "a", 5}); !isStale(err) {
		t.Errorf("an older token came through: %v", err)
	}
}

func TestOnlineSharesQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &book{delay: time.Second}
		src.set("n", "a", 5)
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
		src.set("n", "a", 5)
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

func TestOnlineForgets(t *testing.T) {
	src := &book{}
	o, err := NewOnline(src, OnlineOptions{MaxAge: time.Hour, Names: 10})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		name := fmt.Sprint(i)
		src.set(name, "a", 1)
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

// counting counts what is saved, and may fail.
type counting struct {
	Marks
	saved atomic.Int64
	err   error
}

func (c *counting) Save(ctx context.Context, resource string, m Mark) error {
	if c.err != nil {
		return c.err
	}
	c.saved.Add(1)
	return c.Marks.Save(ctx, resource, m)
}

func TestOfflineWritesOncePerToken(t *testing.T) {
	c := &counting{Marks: marks(t)}
	o := offline(t, c)
	for _, s := range []Sequencer{{"n", "a", 5}, {"n", "a", 5}, {"n", "b", 7}, {"n", "b", 7}, {"n", "b", 7}} {
		if err := o.Check(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []Sequencer{{"n", "a", 5}, {"n", "a", 7}, {"n", "a", 0}} {
		if err := o.Check(t.Context(), s); !isStale(err) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	if n := c.saved.Load(); n != 2 {
		t.Errorf("%d writes for 2 tokens", n)
	}
	// What was admitted is known after a restart.
	if err := offline(t, c).Check(t.Context(), Sequencer{"n", "a", 5}); !isStale(err) {
		t.Errorf("after a restart: %v", err)
	}
}

// A token that can't be made durable is not admitted, and what is known goes on.
func TestOfflineMarkThatCantBeStored(t *testing.T) {
	c := &counting{Marks: marks(t)}
	o := offline(t, c)
	if err := o.Check(t.Context(), Sequencer{"n", "a", 5}); err != nil {
		t.Fatal(err)
	}
	c.err = errors.New("disk full")
	if err := o.Check(t.Context(), Sequencer{"n", "b", 6}); !errors.Is(err, c.err) || isStale(err) {
		t.Errorf("%v", err)
	}
	if err := o.Check(t.Context(), Sequencer{"n", "a", 5}); err != nil {
		t.Errorf("%v", err)
	}
	c.err = nil
	if err := o.Check(t.Context(), Sequencer{"n", "b", 6}); err != nil {
		t.Errorf("%v", err)
	}
}

// Do lets nothing of an earlier term come after anything of a later one: the earlier is told to end, and waited for.
func TestOfflineDoOrdersTerms(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := offline(t, &counting{Marks: memoryMarks{}})
		var mu sync.Mutex
		var story []string
		tell := func(who string) {
			mu.Lock()
			defer mu.Unlock()
			story = append(story, who)
		}
		var wg sync.WaitGroup
		for _, who := range []string{"1", "2"} {
			wg.Go(func() {
				err := o.Do(t.Context(), Sequencer{"n", "a", 5}, func(ctx context.Context) error {
					<-ctx.Done()
					if !isStale(context.Cause(ctx)) {
						t.Errorf("the cause is %v", context.Cause(ctx))
					}
					time.Sleep(time.Second) // it takes its time
					tell("a")
					return errors.New(who)
				})
				if err == nil || err.Error() != who {
					t.Errorf("%s: %v", who, err)
				}
			})
		}
		synctest.Wait()
		wg.Go(func() {
			if err := o.Do(t.Context(), Sequencer{"n", "b", 6}, func(context.Context) error {
				tell("b")
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := o.Check(ctx, Sequencer{"n", "c", 7}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("who waits behind it: %v", err)
		}
		wg.Wait()
		if got := strings.Join(story, ""); got != "aab" {
			t.Errorf("the order is %s", got)
		}
		if err := o.Do(t.Context(), Sequencer{"n", "a", 5}, func(context.Context) error { t.Error("called"); return nil }); !isStale(err) {
			t.Errorf("%v", err)
		}
	})
}

// memoryMarks is for virtual time, in which no file is written.
type memoryMarks map[string]Mark

func (m memoryMarks) Load(_ context.Context, resource string) (Mark, error) { return m[resource], nil }
func (m memoryMarks) Save(_ context.Context, resource string, k Mark) error {
	m[resource] = k
	return nil
}

func TestFileSurvivesCrashes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "marks")
	open := func() *File {
		t.Helper()
		m, err := OpenFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	m := open()
	for i := range 2000 {
		if err := m.Save(t.Context(), fmt.Sprint(i%3), Mark{Token(i + 1), "a\nb"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := OpenFile(path); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("opened twice: %v", err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if err := m.Save(t.Context(), "1", Mark{9999, "a"}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("saved after Close: %v", err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// Cut off anywhere in the last line.
	last := strings.LastIndex(strings.TrimSuffix(string(whole), "\n"), "\n") + 1
	for cut := last; cut < len(whole); cut += 7 {
		if err := os.WriteFile(path, whole[:cut], 0o600); err != nil {
			t.Fatal(err)
		}
		m := open()
		for resource, want := range map[string]Token{"0": 1999, "1": 1997, "2": 1998} {
			if got, _ := m.Load(t.Context(), resource); got.Token != want || got.Holder != "a\nb" {
				t.Errorf("cut at %d: %s is %+v", cut, resource, got)
			}
		}
		if err := m.Save(t.Context(), "1", Mark{2000, "c"}); err != nil {
			t.Fatal(err)
		}
		m.Close()
		m = open()
		if got, _ := m.Load(t.Context(), "1"); got.Token != 2000 {
			t.Errorf("cut at %d, saved again: %+v", cut, got)
		}
		m.Close()
		if b, _ := os.ReadFile(path); len(b) > 1000 {
			t.Errorf("it has grown to %d bytes for 3 marks", len(b))
		}
	}
	if err := os.WriteFile(path, []byte("{\"resource\":\"0\",\"token\":1,\"holder\":\"a\"}\nnonsense\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFile(path); err == nil || !strings.Contains(err.Error(), "line 2 is no mark") {
		t.Errorf("nonsense: %v", err)
	}
}

func BenchmarkCheck(b *testing.B) {
	src := &book{}
	src.set("n", "a", 5)
	o, m := online(b, src, time.Hour), offline(b, marks(b))
	s := Sequencer{"n", "a", 5}
	for name, g := range map[string]Guard{"online": o, "offline": m} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := g.Check(b.Context(), s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
