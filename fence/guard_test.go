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

func (b *book) Set(name, holder string, t Token) {
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
		o := offline(t, &counting{Marks: &memoryMarks{}})
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

// However many names there are, few are remembered, and what is forgotten is still refused.
func TestOfflineForgets(t *testing.T) {
	o := offline(t, &memoryMarks{})
	o.most = 10
	err := o.Do(t.Context(), Sequencer{"in use", "a", 5}, func(ctx context.Context) error {
		for i := range 1000 {
			if err := o.Check(ctx, Sequencer{fmt.Sprint(i), "a", 5}); err != nil {
				t.Fatal(err)
			}
		}
		used := o.resources["in use"]
		if n := len(o.resources); n > 10 || used == nil || len(used.users) != 1 {
			t.Errorf("it remembers %d names, and of the one in use %+v", n, used)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for i := range 1000 {
		if err := o.Check(t.Context(), Sequencer{fmt.Sprint(i), "b", 4}); !isStale(err) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// Two resources of one name, one of them forgotten, would let terms in side by side.
func TestOfflineForgetsNothingInUse(t *testing.T) {
	o := offline(t, &memoryMarks{})
	o.most = 2
	var mu sync.Mutex
	newest := map[string]Token{}
	var sent atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 2000 {
				n := sent.Add(1)
				s := Sequencer{fmt.Sprint(n % 5), "a", Token(n/20) + 1}
				err := o.Do(t.Context(), s, func(context.Context) error {
					mu.Lock()
					defer mu.Unlock()
					if s.Token < newest[s.Name] {
						t.Errorf("%v after token %d", s, newest[s.Name])
					}
					newest[s.Name] = s.Token
					return nil
				})
				if err != nil && !isStale(err) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// memoryMarks are for virtual time, in which no file is written.
type memoryMarks struct{ marks sync.Map }

func (m *memoryMarks) Load(_ context.Context, resource string) (Mark, error) {
	mark, _ := m.marks.Load(resource)
	k, _ := mark.(Mark)
	return k, nil
}

func (m *memoryMarks) Save(_ context.Context, resource string, k Mark) error {
	m.marks.Store(resource, k)
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

// What is known is judged without an allocation.
func TestCheckAllocatesNothing(t *testing.T) {
	for name, check := range knownChecks(t) {
		if n := testing.AllocsPerRun(1000, check); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	for name, check := range knownChecks(b) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				check()
			}
		})
	}
}

// knownChecks are checks of a token that the guard knows to be current: by an answer that is young enough, or by its mark.
func knownChecks(tb testing.TB) map[string]func() {
	tb.Helper()
	src := &book{}
	src.Set("n", "a", 5)
	s, checks := Sequencer{"n", "a", 5}, map[string]func(){}
	for name, g := range map[string]Guard{"online": online(tb, src, time.Hour), "offline": offline(tb, marks(tb))} {
		checks[name] = func() {
			if err := g.Check(tb.Context(), s); err != nil {
				tb.Fatal(err)
			}
		}
		checks[name]()
	}
	return checks
}
