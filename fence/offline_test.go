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

func offline(t testing.TB, m Marks) *Offline {
	t.Helper()
	o, err := NewOffline(m)
	if err != nil {
		t.Fatal(err)
	}
	return o
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
	c := &counting{Marks: &memoryMarks{}}
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

// What can't be a sequencer is refused before it ends what is done in the current term.
func TestOfflineMalformed(t *testing.T) {
	c := &counting{Marks: &memoryMarks{}}
	o := offline(t, c)
	err := o.Do(t.Context(), Sequencer{"n", "a", 5}, func(ctx context.Context) error {
		for _, s := range []Sequencer{{"n", "b", MaxToken + 1}, {"n", "\xff", 6}, {"n", "", 6}} {
			soon, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			if err := o.Check(soon, s); !errors.Is(err, ErrMalformed) {
				t.Errorf("%v: %v", s, err)
			}
		}
		return context.Cause(ctx)
	})
	if err != nil {
		t.Errorf("what was under way: %v", err)
	}
	if n := c.saved.Load(); n != 1 {
		t.Errorf("%d marks were saved", n)
	}
}

// A token that can't be made durable is not admitted, and what is known goes on.
func TestOfflineMarkThatCantBeStored(t *testing.T) {
	c := &counting{Marks: &memoryMarks{}}
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
				err := Do(t.Context(), o, Sequencer{"n", "a", 5}, func(ctx context.Context) error {
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
			if err := Do(t.Context(), o, Sequencer{"n", "b", 6}, func(context.Context) error {
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
		if err := Do(t.Context(), o, Sequencer{"n", "a", 5}, func(context.Context) error { t.Error("called"); return nil }); !isStale(err) {
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

// A name whose first term is on its way in is in use.
func TestOfflineForgetsNoTermThatBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := offline(t, slowMarks{&memoryMarks{}, "n"})
		o.most = 2
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := o.Check(t.Context(), Sequencer{"n", "b", 6}); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		for i := range 10 {
			if err := o.Check(t.Context(), Sequencer{fmt.Sprint(i), "a", 5}); err != nil {
				t.Error(err)
			}
		}
		if err := o.Check(t.Context(), Sequencer{"n", "a", 5}); !isStale(err) {
			t.Errorf("beside token 6: %v", err)
		}
		wg.Wait()
	})
}

// slowMarks take a second to save the mark of one name.
type slowMarks struct {
	Marks
	name string
}

func (m slowMarks) Save(ctx context.Context, resource string, k Mark) error {
	if resource == m.name {
		time.Sleep(time.Second)
	}
	return m.Marks.Save(ctx, resource, k)
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
