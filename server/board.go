package server

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/internal/wire"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// The store is looked at every boardPoll while anybody watches; what this server itself changes is seen at once.
const boardPoll = time.Second

// boardMemory is how many changes a watcher may have missed and still go on where it was.
const boardMemory = 4096

// board is what watchers see: the state of every name, and its changes in order. It works while there are watchers.
type board struct {
	s *Server

	mu       sync.Mutex
	watchers map[*watcher]bool
	names    map[string]seen
	seq      uint64                 // of the last change
	past     []seen                 // the last changes, in order
	pauses   map[string]*wire.Pause // of elections, by their names
	err      error                  // why the store couldn't be looked at; nil when it could
	at       clock.Instant
	stop     context.CancelFunc // of the goroutine; nil when there is none
	wg       sync.WaitGroup
}

// seen is a name as it was at a time.
type seen struct {
	version string
	event   wire.Event
	at      clock.Instant
}

// since returns the event as it is to be sent now: what was left of the lease has become less.
func (s seen) since(now clock.Instant) wire.Event {
	e := s.event
	if e.Lease.ExpiresIn != nil {
		left := wire.Seconds(max(time.Duration(*e.Lease.ExpiresIn)-now.Sub(s.at), 0))
		e.Lease.ExpiresIn = &left
	}
	return e
}

// watcher is told that there are changes; it takes them when it is ready.
type watcher struct{ wake chan struct{} }

func newBoard(s *Server) *board {
	return &board{s: s, watchers: map[*watcher]bool{}, names: map[string]seen{}}
}

// join adds a watcher. The board has looked at the store once when it returns, or failed to.
func (b *board) join() *watcher {
	w := &watcher{make(chan struct{}, 1)}
	b.mu.Lock()
	b.watchers[w] = true
	first := b.stop == nil
	if first {
		ctx, cancel := context.WithCancel(b.s.closing)
		b.stop = cancel
		b.wg.Go(func() { b.run(ctx) })
	}
	b.mu.Unlock()
	if first {
		b.look(b.s.closing)
	}
	return w
}

// leave takes a watcher away, and with the last one the board rests.
func (b *board) leave(w *watcher) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.watchers, w)
	if len(b.watchers) == 0 && b.stop != nil {
		b.stop()
		b.stop = nil
	}
}

func (b *board) run(ctx context.Context) {
	for clock.Sleep(ctx, b.s.clk, boardPoll) == nil {
		b.look(ctx)
	}
}

// close waits until the board rests.
func (b *board) close() { b.wg.Wait() }

// look compares the store with what was seen.
func (b *board) look(ctx context.Context) {
	ctx, cancel := clock.WithTimeout(ctx, b.s.clk, 10*boardPoll)
	defer cancel()
	found := map[string]store.Record{}
	pauses := map[string]*wire.Pause{}
	var err error
	for rec, listErr := range b.s.st.List(ctx, "") {
		if errors.Is(listErr, store.ErrCorrupt) {
			continue // the others can be told all the same
		}
		if listErr != nil {
			err = listErr
			continue
		}
		if name, ok := strings.CutPrefix(rec.Key, election.KeyPrefix); ok {
			if state, err := election.StateOf(rec); err == nil {
				pauses[name] = pauseOf(state)
			}
		} else if !lease.Reserved(rec.Key) {
			found[rec.Key] = rec
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pauses = pauses
	now := b.s.clk.Now()
	if b.err = err; err == nil {
		b.at = now
		for name := range b.names {
			if _, ok := found[name]; !ok {
				b.change(store.Record{Key: name}, now)
			}
		}
	}
	for _, rec := range found {
		b.change(rec, now)
	}
	b.tell()
}

// touch looks at one name that this server has changed, if anybody watches.
func (b *board) touch(ctx context.Context, name string) {
	b.mu.Lock()
	idle := len(b.watchers) == 0
	b.mu.Unlock()
	if idle || name == "" || lease.Reserved(name) {
		return
	}
	rec, err := store.Load(ctx, b.s.st, name)
	if err != nil {
		return // the next look will tell
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.change(rec, b.s.clk.Now())
	b.tell()
}

// change notes a name as it is. b.mu is held.
func (b *board) change(rec store.Record, now clock.Instant) {
	l := b.s.lease(rec)
	l.Paused = b.pauses[rec.Key]
	before, known := b.names[rec.Key]
	if known && before.version == rec.Version && before.event.Lease.Waiters == l.Waiters && same(before.event.Lease.Paused, l.Paused) {
		return
	}
	b.seq++
	as := seen{rec.Version, wire.Event{Seq: b.seq, Lease: l, Gone: rec.Version == ""}, now}
	if as.event.Gone {
		delete(b.names, rec.Key)
	} else {
		b.names[rec.Key] = as
	}
	if len(b.past) == boardMemory {
		b.past = b.past[1:]
	}
	b.past = append(b.past, as)
}

// same reports whether two pauses are one.
func same(a, b *wire.Pause) bool {
	return a == b || a != nil && b != nil && a.By == b.By && a.Reason == b.Reason && a.Since.Equal(b.Since)
}

// tell wakes the watchers. b.mu is held.
func (b *board) tell() {
	for w := range b.watchers {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// since returns the changes after seq, or everything with reset when those are not known any more; and how old the knowledge is.
func (b *board) since(seq uint64) (changes []wire.Event, last uint64, reset bool, age time.Duration, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.s.clk.Now()
	age, err, last = now.Sub(b.at), b.err, b.seq
	if oldest := b.seq - uint64(len(b.past)); seq == 0 || seq > b.seq || seq < oldest {
		for _, s := range b.names {
			e := s.since(now)
			e.Seq = b.seq
			changes = append(changes, e)
		}
		return changes, last, true, age, err
	}
	for _, s := range b.past {
		if s.event.Seq > seq {
			changes = append(changes, s.since(now))
		}
	}
	return changes, last, false, age, err
}
