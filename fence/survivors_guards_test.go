package fence

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// A request is of the current term, or of one of those that share the name; token 0 is of none, also where nothing is known.
func TestCurrentChecks(t *testing.T) {
	shared := Holding{Holder: "b", Token: 7, Shares: []Share{{"a", 5}, {"b", 7}}}
	for _, c := range []struct {
		current Holding
		s       Sequencer
		stale   bool
	}{
		{shared, Sequencer{"n", "a", 5}, false},
		{shared, Sequencer{"n", "b", 7}, false},
		{shared, Sequencer{"n", "b", 5}, true},
		{shared, Sequencer{"n", "a", 6}, true},
		{Holding{}, Sequencer{"n", "", 0}, true},
		{Holding{Token: 7}, Sequencer{"n", "", 0}, true},
	} {
		if err := c.current.Check(c.s); isStale(err) != c.stale {
			t.Errorf("%+v by %+v: %v", c.s, c.current, err)
		}
	}
}

// A refusal for another holder of the current token stays right, and is not asked for again.
func TestARefusalOfTheCurrentTokenIsFinal(t *testing.T) {
	src := &book{}
	src.Set("n", "a", 5)
	o := online(t, src, 0)
	for range 3 {
		if err := o.Check(t.Context(), Sequencer{"n", "b", 5}); !isStale(err) {
			t.Error(err)
		}
	}
	if n := src.asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// A name that was given up has no holder under its last token, and what admitted that holder before counts no more.
func TestATermThatIsGivenUpIsNotAdmitted(t *testing.T) {
	src := &book{}
	src.Set("n", "a", 5)
	o := online(t, src, 0)
	s := Sequencer{"n", "a", 5}
	if err := o.Check(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	src.Set("n", "", 5)
	if err := o.Check(t.Context(), s); !isStale(err) {
		t.Errorf("after the release: %v", err)
	}
}

// What a source says beside an error is no answer.
func TestAnAnswerBesideAnErrorIsNone(t *testing.T) {
	src := &book{err: errDown}
	src.Set("n", "a", 5)
	o := online(t, src, time.Hour)
	for range 2 {
		if err := o.Check(t.Context(), Sequencer{"n", "a", 5}); !errors.Is(err, errDown) {
			t.Errorf("while the source is down: %v", err)
		}
	}
}

// A request that is given up while it asks returns, and asks no further question.
func TestGivenUpWhileItAsks(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	src := &book{delay: time.Hour}
	if err := online(t, src, 0).Check(ctx, Sequencer{"n", "a", 5}); !errors.Is(err, context.Canceled) || src.asked.Load() != 1 {
		t.Errorf("%v, asked %d times", err, src.asked.Load())
	}
}

// A question that was sent after the request arrived is young enough, though the time of day was set back in between.
func TestAQuestionAfterTheArrival(t *testing.T) {
	src := &book{}
	src.Set("n", "a", 5)
	o := online(t, src, 0)
	times := []instant{{1, 100}, {2, 50}}
	o.now = func() instant { at := times[0]; times = times[1:]; return at }
	if err := o.Check(t.Context(), Sequencer{"n", "a", 5}); err != nil || src.asked.Load() != 1 {
		t.Errorf("%v, asked %d times", err, src.asked.Load())
	}
}

// Another's question that is young enough is not asked again.
func TestAYoungQuestionIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := &book{delay: time.Second}
		src.Set("n", "a", 5)
		o := online(t, src, time.Minute)
		done := make(chan error)
		for range 2 {
			go func() { done <- o.Check(t.Context(), Sequencer{"n", "a", 5}) }()
			synctest.Wait()
			time.Sleep(time.Millisecond)
		}
		for range 2 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if n := src.asked.Load(); n != 1 {
			t.Errorf("asked %d times", n)
		}
	})
}

// An answer is as old as the clock says on which it is older.
func TestAge(t *testing.T) {
	for _, c := range []struct {
		then, now instant
		want      time.Duration
	}{
		{instant{5, 5}, instant{7, 6}, 2}, {instant{5, 5}, instant{6, 9}, 4}, {instant{5, 5}, instant{6, 1}, 1}, {instant{5, 5}, instant{5, 5}, 0},
	} {
		if got := age(c.then, c.now); got != c.want {
			t.Errorf("from %v to %v: %v, want %v", c.then, c.now, got, c.want)
		}
	}
}

// A guard remembers as many names as it was told to, forgets all when there are more, and remembers that many again.
func TestNamesThatAreRemembered(t *testing.T) {
	src := &book{}
	o, err := NewOnline(src, OnlineOptions{MaxAge: time.Hour, Names: 3})
	if err != nil {
		t.Fatal(err)
	}
	check := func(from, to int) int64 {
		before := src.asked.Load()
		for i := from; i <= to; i++ {
			name := fmt.Sprint(i)
			src.Set(name, "a", 5)
			if err := o.Check(t.Context(), Sequencer{name, "a", 5}); err != nil {
				t.Error(err)
			}
		}
		return src.asked.Load() - before
	}
	for i, want := range []int64{3, 0} {
		if n := check(1, 3); n != want {
			t.Errorf("round %d of three names: %d questions, want %d", i+1, n, want)
		}
	}
	check(4, 4) // with it, all are forgotten
	for i, want := range []int64{3, 0} {
		if n := check(5, 7); n != want {
			t.Errorf("round %d of three others: %d questions, want %d", i+1, n, want)
		}
	}
	if n := check(1, 1); n != 1 {
		t.Errorf("a name that was forgotten: %d questions", n)
	}
}

// loads counts what is loaded.
type loads struct {
	*counting
	n int
}

func (l *loads) Load(ctx context.Context, resource string) (Mark, error) {
	l.n++
	return l.counting.Load(ctx, resource)
}

// A mark is loaded once, and stored only when it rises: not for a token that a guard before had admitted.
func TestAMarkIsLoadedOnce(t *testing.T) {
	kept := &memoryMarks{}
	if err := kept.Save(t.Context(), "n", Mark{5, "a"}); err != nil {
		t.Fatal(err)
	}
	m := &loads{counting: &counting{Marks: kept}}
	o := offline(t, m)
	for range 3 {
		if err := o.Check(t.Context(), Sequencer{"n", "a", 5}); err != nil {
			t.Error(err)
		}
	}
	if err := o.Check(t.Context(), Sequencer{"n", "b", 6}); err != nil {
		t.Error(err)
	}
	if m.n != 1 || m.saved.Load() != 1 {
		t.Errorf("loaded %d times, saved %d times", m.n, m.saved.Load())
	}
}

// A guard remembers no more resources than it was made for, and none of those that it has room for is loaded again.
func TestResourcesThatAreRemembered(t *testing.T) {
	m := &loads{counting: &counting{Marks: &memoryMarks{}}}
	o := offline(t, m)
	o.most = 3
	check := func(names ...string) {
		for _, name := range names {
			if err := o.Check(t.Context(), Sequencer{name, "a", 5}); err != nil {
				t.Error(err)
			}
		}
	}
	check("a", "b", "c", "a", "b", "c")
	if m.n != 3 {
		t.Errorf("3 resources were loaded %d times", m.n)
	}
	check("d", "e", "f", "g", "h")
	if len(o.resources) > 3 {
		t.Errorf("%d resources are remembered", len(o.resources))
	}
}

// A resource that was forgotten while another request had it in hand is not used by it: another may have its place.
func TestAForgottenResourceIsNotUsed(t *testing.T) {
	o := offline(t, &memoryMarks{})
	old := o.resource("n")
	o.mu.Lock()
	o.forget()
	o.mu.Unlock()
	if !old.gone || o.lock("n") == old {
		t.Error("what was forgotten is in use")
	}
}

// While a later term is let in, no request of the term before is: it waits, and is refused then.
func TestNoRequestOfATermThatIsBeingReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := offline(t, slowMarks{&memoryMarks{}, "n"})
		if err := o.Check(t.Context(), Sequencer{"n", "a", 5}); err != nil {
			t.Fatal(err)
		}
		taken := make(chan error)
		go func() { taken <- o.Check(t.Context(), Sequencer{"n", "b", 6}) }()
		synctest.Wait() // it saves the mark of its term
		called := false
		err := o.Do(t.Context(), Sequencer{"n", "a", 5}, func(context.Context) error { called = true; return nil })
		if called || !isStale(err) {
			t.Errorf("a request of the term before: called %v, %v", called, err)
		}
		if err := <-taken; err != nil {
			t.Error(err)
		}
	})
}

// A request without a token is stale; one that can't be a sequencer is malformed.
func TestWhatIsNoSequencer(t *testing.T) {
	o := offline(t, &memoryMarks{})
	if err := o.Check(t.Context(), Sequencer{"n", "", 0}); !isStale(err) || errors.Is(err, ErrMalformed) {
		t.Errorf("without a token: %v", err)
	}
	for _, s := range []Sequencer{{"n", "", 1}, {"n", "", 5}, {"", "a", 1}} {
		if err := o.Check(t.Context(), s); !errors.Is(err, ErrMalformed) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	if err := (Sequencer{"n", "a", 0}).Valid(); !errors.Is(err, ErrMalformed) {
		t.Errorf("token 0 is valid: %v", err)
	}
}

// The context of what was done under a term ends with it, for what it left running.
func TestTheContextOfWhatWasDoneEnds(t *testing.T) {
	var left context.Context
	err := offline(t, &memoryMarks{}).Do(t.Context(), Sequencer{"n", "a", 5}, func(ctx context.Context) error { left = ctx; return nil })
	if err != nil || left.Err() == nil {
		t.Errorf("%v, %v", err, left.Err())
	}
}

// The text of a sequencer shows letters, digits and a few signs as they are, and all other bytes in hex.
func TestSequencerText(t *testing.T) {
	const plainly = "azAZ09-._~/:@+="
	if got := (Sequencer{plainly, "?%Öÿ", 5}).String(); got != "v1;5;"+plainly+";%3F%25%C3%96%C3%BF" {
		t.Error(got)
	}
	s := Sequencer{"?%Öÿ", "/\x00\x0f o", 5}
	if got, err := ParseSequencer(s.String()); err != nil || got != s {
		t.Errorf("%q: %+v, %v", s.String(), got, err)
	}
}
