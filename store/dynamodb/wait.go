package dynamodb

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/enginekit/watcher"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// The pace of a Wait.
const (
	pollMin    = 20 * time.Millisecond
	pollShare  = 8                      // a pause is this part of the time that the present term has been watched,
	pollJitter = 1.0 / 8                // less up to this part of it
	lookBefore = 20                     // the look before a hold is given up comes this part of its TTL early,
	lookMost   = 250 * time.Millisecond // or this much
)

// maxWatches is how many keys are remembered when nobody waits for them: a waiter that comes back
// after a renewal doesn't have to read at once what it has just been given.
const maxWatches = 1024

// Wait implements [store.Waiter]. DynamoDB doesn't push, so it polls, once for all waiters for a
// key on this store. The pause is an eighth of the time for which the present term has been
// watched, 20 ms at least and Options.PollMax at most, with jitter. One more read comes shortly
// before the record would have been unchanged for its TTL, so that a taker doesn't write in vain.
//
// A renewal doesn't speed up the polling, a change of holder does. In its first 8 s a term costs
// some 45 read units, and 3,840 an hour from then on at the default PollMax.
func (s *Store) Wait(ctx context.Context, key, version string) (store.Record, error) {
	if err := driver.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	w, leave, err := s.watches.Join(key)
	if err != nil {
		return store.Record{}, err
	}
	defer leave()
	ctx, cancel := watcher.Within(ctx, s.watches.Life())
	defer cancel()
	before := w.begun()
	for {
		seen, due, news := w.look(before, version, s.opts.PollMax)
		if seen != nil {
			return *seen, nil
		}
		if wait := due.Sub(s.opts.Clock.Now()); wait > 0 {
			if err := s.rest(ctx, wait, news); err != nil {
				return store.Record{}, err
			}
			continue
		}
		if err := w.read(ctx, s, key, news); err != nil {
			return store.Record{}, err
		}
	}
}

// rest sleeps until there is news, or time has come for a read.
func (s *Store) rest(ctx context.Context, d time.Duration, news <-chan struct{}) error {
	timer := clock.NewTimer(s.opts.Clock, d)
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
	news  chan struct{} // closed by the next read
	reads int           // that have begun
	seen  *store.Record // by the latest read that was answered
	nth   int           // its number
	came  clock.Instant // when its answer came
	first clock.Instant // when the answer came that first had that version
	since clock.Instant // when the answer came that first had that term
	early float64       // the part of the pause that jitter takes off
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
	pause := min(max(w.came.Sub(w.since)/pollShare, pollMin), most)
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
func (w *watch) read(ctx context.Context, s *Store, key string, news <-chan struct{}) error {
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
	rec, err := store.Load(ctx, s, key)
	if err != nil {
		return err
	}
	w.note(rec, nth, s.opts.Clock.Now())
	return nil
}

// note keeps what a read found and wakes those who wait.
func (w *watch) note(rec store.Record, nth int, came clock.Instant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen == nil || w.seen.Version != rec.Version {
		w.first = came
	}
	if w.seen == nil || w.seen.Owner != rec.Owner || w.seen.Token != rec.Token {
		w.since = came
	}
	w.seen, w.nth, w.came, w.early = &rec, nth, came, rand.Float64()*pollJitter
	close(w.news)
	w.news = make(chan struct{})
}

// begun returns how many reads have begun.
func (w *watch) begun() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.reads
}
