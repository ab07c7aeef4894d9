// Package poll waits for changes of records in a store that doesn't push: it reads, once for all
// who wait for a key, ever more slowly.
package poll

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/enginekit/watcher"
	"github.com/leasehold/leasehold/store"
)

// The pace of a Wait.
const (
	Min = 20 * time.Millisecond // the shortest pause
	// A pause is this part of the time that the present term has been watched,.
	share  = 8
	Jitter = 1.0 / 8 // less up to this part of it
	// The look before a hold is given up comes this part of its TTL early,.
	lookBefore = 20
	lookMost   = 250 * time.Millisecond // or this much
)

// maxWatches is how many keys are remembered when nobody waits for them: a waiter that comes back
// after a renewal doesn't have to read at once what it has just been given.
const maxWatches = 1024

// Poller polls one store. Make one with [New].
type Poller struct {
	load    func(ctx context.Context, key string) (store.Record, error)
	clk     clock.Clock
	most    atomic.Int64 // a time.Duration
	watches *watcher.Set[*watch]
}

// New returns a poller that reads by load, which returns a record without a version where there is
// none, and makes pauses of up to most. It reads nothing before the first Wait. ctx gives its
// values to what it does.
func New(ctx context.Context, clk clock.Clock, most time.Duration, load func(ctx context.Context, key string) (store.Record, error)) *Poller {
	p := &Poller{load: load, clk: clk}
	p.Pace(most)
	p.watches = watcher.NewSet(ctx, watcher.Kind[*watch]{Begin: newWatch, Linger: watcher.Forever, MaxIdle: maxWatches, Clock: clk})
	return p
}

// Pace has pauses be up to most from the next one on.
func (p *Poller) Pace(most time.Duration) { p.most.Store(int64(most)) }

// End ends all Waits, which return [store.ErrClosed], and waits for what the poller does.
func (p *Poller) End() { p.watches.End() }

// Wait implements [store.Waiter]. The pause is an eighth of the time for which the present term has
// been watched, [Min] at least and the poller's most at most, with jitter. One more read comes
// shortly before the record would have been unchanged for its TTL, so that a taker doesn't write in
// vain. A renewal doesn't speed up the polling; a change of holder does, and each change of a
// record that nobody holds.
func (p *Poller) Wait(ctx context.Context, key, version string) (store.Record, error) {
	w, leave, err := p.watches.Join(key)
	if err != nil {
		return store.Record{}, err
	}
	defer leave()
	ctx, cancel := watcher.Within(ctx, p.watches.Life())
	defer cancel()
	before := w.begun()
	for {
		seen, due, news := w.look(before, version, time.Duration(p.most.Load()))
		if seen != nil {
			return *seen, nil
		}
		if wait := due.Sub(p.clk.Now()); wait > 0 {
			if err := p.rest(ctx, wait, news); err != nil {
				return store.Record{}, err
			}
			continue
		}
		if err := w.read(ctx, p, key, news); err != nil {
			return store.Record{}, err
		}
	}
}

// Hurry has the waiters for key read at once, and as often from then on as after a change of
// holder: a change is expected.
func (p *Poller) Hurry(key string) {
	w, leave, err := p.watches.Join(key)
	if err != nil {
		return // nobody waits any more
	}
	defer leave()
	w.hurry(p.clk.Now())
}

// rest sleeps until there is news, or time has come for a read.
func (p *Poller) rest(ctx context.Context, d time.Duration, news <-chan struct{}) error {
	timer := clock.NewTimer(p.clk, d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-news:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// watch is what those who wait for one key share. One of them reads at a time.
type watch struct {
	turn chan struct{} // of capacity 1: held by the one who reads

	mu    sync.Mutex
	news  chan struct{} // closed by the next read, or when one is due sooner
	reads int           // that have begun
	seen  *store.Record // by the latest read that was answered
	nth   int           // its number
	came  clock.Instant // when its answer came
	first clock.Instant // when the answer came that first had that version
	since clock.Instant // when the answer came that first had that term
	early float64       // the part of the pause that jitter takes off

	hurried clock.Instant // when a read was asked for, sooner than the pace has it
}

func newWatch(context.Context, string) *watch {
	return &watch{turn: make(chan struct{}, 1), news: make(chan struct{})}
}

// look returns the record if a read tells one who waits for another version than that what it is,
// and otherwise when the next read is due, and the news that come before. A read that began before
// the waiter came, one of the first reads, tells only that its version was stored then: the waiter
// may have written another one since.
func (w *watch) look(before int, version string, most time.Duration) (seen *store.Record, due clock.Instant, news <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.seen == nil:
		return nil, clock.Ended, w.news
	case w.seen.Version == version:
		return nil, w.due(most), w.news
	case w.nth <= before:
		return nil, clock.Ended, w.news
	}
	rec := w.seen.Clone()
	return &rec, 0, nil
}

// due returns when to read next. w.mu is held, and there was a read.
func (w *watch) due(most time.Duration) clock.Instant {
	if w.hurried > w.came {
		return w.hurried
	}
	pause := min(max(w.came.Sub(w.since)/share, Min), most)
	pause -= time.Duration(float64(pause) * w.early)
	at := w.came.Add(pause)
	if w.seen.Owner == "" || w.seen.Session != "" {
		return at
	}
	look := w.first.Add(w.seen.TTL - min(w.seen.TTL/lookBefore, lookMost))
	if w.came < look {
		return min(at, look)
	}
	return at
}

// read reads the record for all who wait, unless another does so now, or has done so since the look
// that gave news. It returns nil when there is something new to look at.
func (w *watch) read(ctx context.Context, p *Poller, key string, news <-chan struct{}) error {
	select {
	case w.turn <- struct{}{}:
	case <-news:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-w.turn }()
	select {
	case <-news: // another's turn was just before
		return nil
	default:
	}
	w.mu.Lock()
	w.reads++
	nth := w.reads
	w.mu.Unlock()
	rec, err := p.load(ctx, key)
	if err != nil {
		return err
	}
	w.note(rec, nth, p.clk.Now())
	return nil
}

// note keeps what a read found and wakes those who wait.
func (w *watch) note(rec store.Record, nth int, came clock.Instant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen == nil || w.seen.Version != rec.Version {
		w.first = came
	}
	if w.seen == nil || w.seen.Owner != rec.Owner || w.seen.Token != rec.Token || rec.Owner == "" && w.seen.Version != rec.Version {
		w.since = came
	}
	w.seen, w.nth, w.came, w.early = &rec, nth, came, rand.Float64()*Jitter
	close(w.news)
	w.news = make(chan struct{})
}

// hurry makes a read due.
func (w *watch) hurry(now clock.Instant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen == nil {
		return // it is due already
	}
	w.since, w.hurried = now, now
	close(w.news)
	w.news = make(chan struct{})
}

// begun returns how many reads have begun.
func (w *watch) begun() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reads
}
