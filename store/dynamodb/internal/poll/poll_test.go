package poll

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shelf is a store of one record, whose reads are counted.
type shelf struct {
	mu    sync.Mutex
	rec   store.Record
	reads int
}

func (s *shelf) load(context.Context, string) (store.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	return s.rec, nil
}

func (s *shelf) put(rec store.Record) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rec = rec
}

// count returns how often the store was read since the last count.
func (s *shelf) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.reads
	s.reads = 0
	return n
}

// Who is to read, and is late because others were quicker, doesn't read again what they have read.
func TestReadsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		p := New(t.Context(), clocktest.New(0), time.Second, s.load)
		defer p.End()
		w, leave, err := p.watches.Join("k")
		if err != nil {
			t.Fatal(err)
		}
		defer leave()
		for range 20 { // turn and news come at once
			_, _, news := w.look(0, "", time.Second)
			for range 2 {
				if err := w.read(t.Context(), p, "k", news); err != nil {
					t.Fatal(err)
				}
			}
		}
		if n := s.count(); n != 20 {
			t.Errorf("%d reads, want 20", n)
		}
	})
}

// A poller remembers a bounded number of keys that were waited for.
func TestWatchesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(t.Context(), clocktest.New(0), time.Second, (&shelf{}).load)
		defer p.End()
		for i := range 3 * maxWatches {
			if _, err := p.Wait(t.Context(), fmt.Sprint(i), "x"); err != nil {
				t.Fatal(err)
			}
		}
		if n := p.watches.Len(); n > maxWatches {
			t.Errorf("%d keys are remembered, want %d at most", n, maxWatches)
		}
	})
}

// follow waits for each change until ctx ends, and tells when it was seen.
func follow(ctx context.Context, p *Poller, seen chan<- time.Time) {
	version := ""
	for {
		rec, err := p.Wait(ctx, "k", version)
		if err != nil {
			return
		}
		version = rec.Version
		seen <- time.Now()
	}
}

// A pace of one read in 12 s is kept, and a change that is expected is seen as soon as one after a change of holder.
func TestFinding_D3_AChangeThatIsExpectedIsSeenSoon(t *testing.T) {
	for _, holder := range []string{"pod", ""} {
		synctest.Test(t, func(t *testing.T) {
			s := &shelf{rec: store.Record{Key: "k", Owner: holder, Token: 1, TTL: time.Hour, Version: "1"}}
			p := New(t.Context(), clocktest.New(0), 12*time.Second, s.load)
			ctx, cancel := context.WithCancel(t.Context())
			seen := make(chan time.Time, 8)
			var all sync.WaitGroup
			all.Go(func() { follow(ctx, p, seen) })
			time.Sleep(10 * time.Minute)
			<-seen
			s.count()
			time.Sleep(10 * time.Minute)
			if n := s.count(); n < 50 || n > 58 { // with jitter
				t.Errorf("%q: %d reads in 10 min, want 50 to 58", holder, n)
			}
			p.Hurry("k")
			time.Sleep(2 * time.Second)
			changed := time.Now()
			s.put(store.Record{Key: "k", Owner: "other", Token: 2, TTL: time.Hour, Version: "2"})
			if took := (<-seen).Sub(changed); took > 500*time.Millisecond {
				t.Errorf("%q: a change 2 s later was seen after %v", holder, took)
			}
			cancel()
			all.Wait()
			p.End()
		})
	}
}

// Each change of what nobody holds quickens the pace: it is a word of somebody, not a sign of life.
func TestFinding_D3_WordsQuickenAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{rec: store.Record{Key: "k", Version: "1"}}
		p := New(t.Context(), clocktest.New(0), 12*time.Second, s.load)
		ctx, cancel := context.WithCancel(t.Context())
		seen := make(chan time.Time, 8)
		var all sync.WaitGroup
		all.Go(func() { follow(ctx, p, seen) })
		<-seen
		time.Sleep(10 * time.Minute)
		changed := time.Now()
		s.put(store.Record{Key: "k", Version: "2"})
		if took := (<-seen).Sub(changed); took > 12*time.Second {
			t.Errorf("the first change was seen after %v", took)
		}
		changed = time.Now()
		s.put(store.Record{Key: "k", Version: "3"})
		if took := (<-seen).Sub(changed); took > 100*time.Millisecond {
			t.Errorf("the next one was seen after %v", took)
		}
		cancel()
		all.Wait()
		p.End()
	})
}
