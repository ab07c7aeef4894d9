// Package sessions observes the sessions of others, for primitives whose records list several of
// them.
package sessions

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/lease/sightings"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// maxSeen bounds what is remembered, unless [Watch.Remember] says another number. A session that is
// forgotten costs a wait of one more TTL, not safety.
const maxSeen = 1024

// Watch is what one process has observed of sessions. It remembers from one call to the next, so
// that callers who each look only once notice an end, too. It is safe for concurrent use. It is no
// lease.Observer, since package lease uses it, and since it closes what has died and knows an end
// for good.
type Watch struct {
	st   store.Store
	push store.Store // the same, without a bound on its requests
	clk  clock.Clock
	book *sightings.Book // of this process and those before; nil when there is none

	told func(store.Record) // called with each record as it was read or heard of; may be nil

	mu   sync.Mutex // never held over I/O
	seen map[string]sight
	room int // for so many
}

// sight is what was seen of one session.
type sight struct {
	protocol.Seen
	looked clock.Instant // the last time
	over   bool          // for good: keys of sessions are not used again
}

// NewWatch returns one that has seen nothing, on the store and by the clock of m. book, which may
// be nil, is what is kept of sightings.
func NewWatch(m Manager, book *sightings.Book) *Watch {
	return &Watch{st: Bounded(m), push: m.Store(), clk: m.Clock(), book: book, seen: map[string]sight{}, room: maxSeen}
}

// Remember has room for what was seen of n sessions, at least. It is called before any other
// method.
func (w *Watch) Remember(n int) { w.room = max(w.room, n) }

// Tell has f called with each record of a session that is read or heard of, as it is: for what it
// carries, and how it ended. f must not block. Tell is called before any other method.
func (w *Watch) Tell(f func(store.Record)) { w.told = f }

// Over looks at sessions, by their keys, and returns those that are over. One that has not been
// renewed for its TTL is closed first: from then on its process can't rely on it, nor revive it.
// next is when another of them may have died. It blocks for a read of each, and a write of each
// that died, each bounded as [Bounded] has it; one that fails is Over's error.
func (w *Watch) Over(ctx context.Context, keys []string) (over map[string]bool, next clock.Instant, err error) {
	over, next = map[string]bool{}, clock.NoDeadline
	for _, key := range keys {
		if _, known := over[key]; known {
			continue
		}
		due, ended, err := w.look(ctx, key)
		if err != nil {
			return nil, 0, err
		}
		over[key] = ended
		if !ended {
			next = min(next, due)
		}
	}
	return over, next, nil
}

// Behind is Over for those behind whom one waits in line, the nearest first. As long as the nearest
// is renewed, it looks at that one alone: behind each of the others somebody else waits, who looks.
// So what a line costs doesn't grow with the square of its length. Once the nearest has not been
// renewed for 2/5 of its TTL, or is over, it looks at all of them: several may have died at once,
// and each counts as over a TTL after it was first looked at.
func (w *Watch) Behind(ctx context.Context, keys []string) (over map[string]bool, next clock.Instant, err error) {
	if len(keys) < 2 {
		return w.Over(ctx, keys)
	}
	over, next, err = w.Over(ctx, keys[:1])
	if err != nil {
		return nil, 0, err
	}
	if late := w.late(keys[0]); !over[keys[0]] && w.clk.Now() < late {
		return over, min(next, late), nil
	}
	return w.Over(ctx, keys)
}

// late returns when a session that was looked at counts as late with its renewal, of which there is
// one every third of the TTL.
func (w *Watch) late(key string) clock.Instant {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.seen[key]
	return s.Since.Add(s.Rec.TTL * 2 / 5)
}

// Mourn calls died once the store proves that the process of one of these sessions has ended
// ([driver.Witness]), or one was closed: a look finds it over then. Where the store can't prove
// that, it does nothing. It returns what reports whether died was called, after it has waited for
// the end of what looks, which ends with ctx.
func (w *Watch) Mourn(ctx context.Context, keys []string, died func()) (ended func() bool) {
	var found atomic.Bool
	var looking sync.WaitGroup
	if _, ok := w.push.(driver.Witness); !ok {
		keys = nil
	}
	for _, key := range keys {
		w.mu.Lock()
		version := w.seen[key].Rec.Version
		w.mu.Unlock()
		looking.Go(func() {
			for {
				rec, err := driver.WaitHolder(ctx, w.push, key, version)
				if err != nil {
					return // the looks go on
				}
				if rec.Owner == "" || rec.Age == store.AgeGone {
					found.Store(true)
					died()
					return
				}
				version = rec.Version
			}
		})
	}
	return func() bool {
		looking.Wait()
		return found.Load()
	}
}

// Heard takes note of a session's record that a Wait has brought.
func (w *Watch) Heard(rec store.Record) { w.note(rec.Key, rec) }

// Renews reports whether a session was seen or heard to be renewed within 2/5 of its TTL, so that
// [Watch.Behind] would look at it alone. It doesn't read.
func (w *Watch) Renews(key string) bool {
	w.mu.Lock()
	s := w.seen[key]
	w.mu.Unlock()
	return s.Known && !s.over && w.clk.Now() < w.late(key)
}

// Silent reports whether a session was not seen to be renewed for 3/4 of its TTL. It doesn't read.
func (w *Watch) Silent(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.seen[key]
	return s.over || s.Known && w.clk.Now() >= s.Since.Add(s.Rec.TTL*3/4)
}

// Gone is Over where all of them are; else it returns nil.
func (w *Watch) Gone(ctx context.Context, keys []string) (map[string]bool, error) {
	over, _, err := w.Over(ctx, keys)
	for _, ended := range over {
		if !ended {
			return nil, err
		}
	}
	return over, err
}

// look reads a session's record, and says whether the session is over, or else until when it isn't
// at the least.
func (w *Watch) look(ctx context.Context, key string) (due clock.Instant, over bool, err error) {
	rec, err := store.Load(ctx, w.st, key)
	if err != nil {
		return 0, false, err
	}
	due, over = w.note(key, rec)
	if over || w.clk.Now() < due {
		return due, over, nil
	}
	_, err = w.st.Put(ctx, protocol.Freed(rec, protocol.WhyExpired, w.clk.Wall(), rand.Text()))
	var conflict *store.ConflictError
	switch {
	case err == nil, errors.Is(err, store.ErrNotFound):
		w.end(key)
		return 0, true, nil
	case errors.As(err, &conflict): // it was renewed, or closed by another
		due, over = w.note(key, conflict.Current)
		return due, over, nil
	}
	return 0, false, err // nothing is known: look again
}

// note takes down what a read, which has just come back, showed of a session: that it is over, or
// from when it counts as abandoned unless it changes.
func (w *Watch) note(key string, rec store.Record) (due clock.Instant, over bool) {
	if w.told != nil {
		w.told(rec)
	}
	if rec.Owner == "" {
		w.end(key)
		return 0, true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := w.seen[key]
	if seen.over { // the read was overtaken by one that found the end
		return 0, true
	}
	now := w.clk.Now()
	if !seen.Known {
		seen.Rec, seen.Since, seen.Known = w.book.Recall(key, now)
	}
	kept := store.Record{Key: key, Owner: rec.Owner, Token: rec.Token, TTL: rec.TTL, Nonce: rec.Nonce, Version: rec.Version, Age: rec.Age}
	w.keep(key, sight{Seen: seen.Note(kept, now), looked: now})
	w.book.Note(kept, w.seen[key].Since)
	return w.seen[key].Dead(), false
}

// end remembers that a session is over, lest a read from before its end, which comes back late,
// begins a wait of one more TTL.
func (w *Watch) end(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keep(key, sight{looked: w.clk.Now(), over: true})
	w.book.Forget(key)
}

// keep remembers s, and for that forgets one that is over, or else the one that was not looked at
// for the longest time, when there are too many. w.mu is held.
func (w *Watch) keep(key string, s sight) {
	if _, known := w.seen[key]; !known && len(w.seen) >= w.room {
		oldest, at := "", sight{looked: clock.NoDeadline}
		for k, s := range w.seen {
			if s.over && !at.over || s.over == at.over && s.looked < at.looked {
				oldest, at = k, s
			}
		}
		delete(w.seen, oldest)
	}
	w.seen[key] = s
}
