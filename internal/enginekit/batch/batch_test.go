package batch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// write notes how it was sent.
type write struct {
	key   string
	size  int
	trip  time.Duration // the server's when 0
	group []string      // the keys of those that were sent with it
}

func (w *write) Key() string { return w.key }
func (w *write) Size() int   { return w.size }

// server answers each request after a round trip, in virtual time, or when its context ends.
type server struct {
	*Groups[*write]
	trip     atomic.Int64 // nanoseconds
	requests atomic.Int64
	stopped  atomic.Int64 // requests whose context ended first
}

func newServer(t *testing.T, trip time.Duration) *server {
	s := &server{}
	s.trip.Store(int64(trip))
	s.Groups = New(1, s.serve)
	t.Cleanup(func() {
		s.Close()
		if s.flying != 0 || len(s.keys) != 0 || len(s.queue) != 0 {
			t.Errorf("when all is over, %d requests count as under way, %v as busy, and %d writes wait", s.flying, s.keys, len(s.queue))
		}
	})
	return s
}

func (s *server) serve(ctx context.Context, group []*write) {
	s.requests.Add(1)
	var keys []string
	for _, w := range group {
		keys = append(keys, w.key)
	}
	for _, w := range group {
		w.group = keys
	}
	trip := max(group[0].trip, time.Duration(s.trip.Load()))
	if trip == 0 { // see gate/race_test.go for why there is no timer of no length
		return
	}
	select {
	case <-time.After(trip):
	case <-ctx.Done():
		s.stopped.Add(1)
	}
}

func (s *server) do(ctx context.Context, w *write) (bool, error) {
	return s.Do(ctx, w, func() { s.serve(ctx, []*write{w}) })
}

// A write that finds none under way is sent by itself, at once. Those that come meanwhile are sent together after it.
func TestTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, patience/2)
		var all sync.WaitGroup
		writes := make([]*write, 5)
		start := time.Now()
		for i := range writes {
			writes[i] = &write{key: fmt.Sprint(i)}
			all.Go(func() {
				if sent, err := s.do(t.Context(), writes[i]); !sent || err != nil {
					t.Errorf("%d: sent %v, %v", i, sent, err)
				}
			})
			synctest.Wait()
		}
		all.Wait()
		if took := time.Since(start); took != patience {
			t.Errorf("%v for two round trips of %v", took, patience/2)
		}
		if got := writes[0].group; !slices.Equal(got, []string{"0"}) {
			t.Errorf("the first was sent with %v", got)
		}
		if got := writes[3].group; !slices.Equal(got, []string{"1", "2", "3", "4"}) {
			t.Errorf("the others were sent as %v", got)
		}
	})
}

// A request that is not answered holds up nobody for longer than patience, nor does it matter how many there are.
func TestNobodyWaitsForLateAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, time.Hour)
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() { _, _ = s.do(t.Context(), &write{key: fmt.Sprint("late", i)}) })
			time.Sleep(2 * patience)
		}
		if n := s.requests.Load(); n != 3 {
			t.Errorf("%d requests under way, want 3", n)
		}
		s.trip.Store(0)
		start, w := time.Now(), &write{key: "k"}
		if _, err := s.do(t.Context(), w); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took > patience {
			t.Errorf("it took %v", took)
		}
		all.Wait()
	})
}

// An answer that comes late releases nobody: what was sent after it is still under way, and the next ones wait for that.
func TestLateAnswersReleaseNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, 0)
		var all sync.WaitGroup
		do := func(w *write) {
			all.Go(func() {
				if _, err := s.do(t.Context(), w); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		do(&write{key: "late", trip: 3 * patience})
		do(&write{key: "long", trip: 10 * patience})
		time.Sleep(4 * patience) // the first is answered, the second was sent after patience
		next := []*write{{key: "a"}, {key: "b"}}
		do(next[0])
		do(next[1])
		if n := s.requests.Load(); n != 2 {
			t.Errorf("%d requests: the next writes don't wait for the one under way", n)
		}
		all.Wait()
		if !slices.Equal(next[0].group, []string{"a", "b"}) {
			t.Errorf("the next writes were sent as %v", next[0].group)
		}
	})
}

// Two writes to a key are never in one group, and the second waits for nothing.
func TestWritesToOneKeyGoApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, patience/2)
		var all sync.WaitGroup
		for _, key := range []string{"first", "k", "k", "k"} {
			w := &write{key: key}
			all.Go(func() {
				if _, err := s.do(t.Context(), w); err != nil || len(w.group) != 1 {
					t.Errorf("%v was sent, %v", w.group, err)
				}
			})
			synctest.Wait()
		}
		if n := s.requests.Load(); n != 3 {
			t.Errorf("%d requests at once, want 3: one k waits for the first", n)
		}
		all.Wait()
	})
}

// A group isn't larger than what a server takes.
func TestGroupsAreBounded(t *testing.T) {
	for name, c := range map[string]struct{ n, size, want int }{
		"by writes": {most + 50, 10, most}, "by bytes": {20, mostBytes / 8, 8}, "at least one": {3, mostBytes + 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(t, patience/2)
				var all sync.WaitGroup
				largest := make(chan int, c.n)
				for i := range c.n {
					w := &write{key: fmt.Sprint(i), size: c.size}
					all.Go(func() {
						if _, err := s.do(t.Context(), w); err != nil {
							t.Error(err)
						}
						largest <- len(w.group)
					})
					synctest.Wait()
				}
				all.Wait()
				close(largest)
				got := 0
				for n := range largest {
					got = max(got, n)
				}
				if got != c.want {
					t.Errorf("the largest group has %d writes, want %d", got, c.want)
				}
			})
		})
	}
}

// A caller whose context ends is told whether its write was sent. One that wasn't never is; what was sent goes on for the others, and is
// given up when nobody waits for it any more.
func TestCallersThatLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, time.Hour)
		cause := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		var all sync.WaitGroup
		leave := func(key string, wantSent bool) {
			all.Go(func() {
				if sent, err := s.do(ctx, &write{key: key}); sent != wantSent || !errors.Is(err, cause) {
					t.Errorf("%s: sent %v, %v; want %v, and the cause", key, sent, err, wantSent)
				}
			})
			synctest.Wait()
		}
		first, done := context.WithCancel(t.Context())
		all.Go(func() { _, _ = s.do(first, &write{key: "first"}) })
		synctest.Wait()
		leave("waits", false)
		cancel(cause)
		synctest.Wait()
		time.Sleep(2 * patience)
		if n := s.requests.Load(); n != 1 {
			t.Fatalf("%d requests: what was given up before it was sent was sent", n)
		}

		ctx, cancel = context.WithCancelCause(t.Context())
		other, stop := context.WithCancelCause(t.Context())
		leave("one", true)
		all.Go(func() {
			if sent, err := s.do(other, &write{key: "other"}); !sent || !errors.Is(err, cause) {
				t.Errorf("other: sent %v, %v", sent, err)
			}
		})
		time.Sleep(2 * patience)
		cancel(cause)
		synctest.Wait()
		if n := s.stopped.Load(); n != 0 {
			t.Error("a request was given up for which somebody waits")
		}
		stop(cause)
		synctest.Wait()
		if n := s.stopped.Load(); n != 1 {
			t.Error("a request goes on for which nobody waits")
		}
		done()
		all.Wait()
	})
}

// Close drops what was not sent, and waits for what was.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, time.Hour)
		var all sync.WaitGroup
		do := func(key string, wantSent bool, want error) {
			all.Go(func() {
				if sent, err := s.do(t.Context(), &write{key: key}); sent != wantSent || !errors.Is(err, want) {
					t.Errorf("%s: sent %v, %v; want %v, %v", key, sent, err, wantSent, want)
				}
			})
			synctest.Wait()
		}
		do("alone", true, nil)
		do("together", true, nil)
		time.Sleep(2 * patience)
		do("waits", false, store.ErrClosed)
		start := time.Now()
		s.Close()
		if took := time.Since(start); took != time.Hour-patience {
			t.Errorf("Close took %v: it has to wait for what is under way", took)
		}
		do("late", false, store.ErrClosed)
		all.Wait()
		s.Close()
	})
}

// As many requests as the width are under way before writes wait, and each that is answered has those sent that do.
func TestWidth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, patience/2)
		s.width = 2
		var writes []*write
		var all sync.WaitGroup
		for i := range 6 {
			w := &write{key: fmt.Sprint(i)}
			writes = append(writes, w)
			all.Go(func() {
				if sent, err := s.do(t.Context(), w); !sent || err != nil {
					t.Errorf("%s: %v, %v", w.key, sent, err)
				}
			})
			synctest.Wait() // it is under way, or in the queue
			time.Sleep(patience / 100)
		}
		all.Wait()
		for i, w := range writes {
			if want := [][]string{{"0"}, {"1"}, {"2", "3", "4", "5"}}[min(i, 2)]; !slices.Equal(w.group, want) {
				t.Errorf("%d was sent with %v, want %v", i, w.group, want)
			}
		}
	})
}
