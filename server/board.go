package server

import (
	"context"
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
	sessions map[string]seen
	kept     map[string]map[string]struct{} // names, by the session that keeps them
	seq      uint64                         // of the last change
	past     []seen                         // the last changes, in order
	pauses   map[string]*wire.Pause         // of elections, by their names
	err      error                          // why the store couldn't be looked at; nil when it could
	at       clock.Instant
	stop     context.CancelFunc // of the goroutine; nil when there is none
	wg       sync.WaitGroup
}

// seen is a name or a session as it was at a time.
type seen struct {
	key     string
	version string
	seq     uint64
	at      clock.Instant
	lease   wire.Lease
	session *wire.SessionEvent // nil for a name
	gone    bool               // the name
}

// told is an event as it is to be sent.
type told struct {
	kind string
	seq  uint64
	data any
}

// tell returns the event as it is to be sent now: what was left of the lease has become less.
func (s seen) tell(now clock.Instant) told {
	if s.session != nil {
		e := *s.session
		e.Seq, e.ExpiresIn = s.seq, left(e.ExpiresIn, now.Sub(s.at))
		return told{"session", s.seq, e}
	}
	e := wire.Event{Seq: s.seq, Lease: s.lease, Gone: s.gone}
	e.Lease.ExpiresIn = left(e.Lease.ExpiresIn, now.Sub(s.at))
	return told{"lease", s.seq, e}
}

// watcher is told that there are changes; it takes them when it is ready.
type watcher struct{ wake chan struct{} }

func newBoard(s *Server) *board {
	return &board{
		s: s, watchers: map[*watcher]bool{}, names: map[string]seen{}, sessions: map[string]seen{}, kept: map[string]map[string]struct{}{},
		seq: 1, // 0 is that of a watcher who has been told nothing
	}
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
	b.mu.Lock()
	begun, seq := b.s.clk.Now(), b.seq
	b.mu.Unlock()
	found, err := b.s.survey(ctx, "")
	if err == nil {
		err = b.loadSessions(ctx, b.missing(found), found)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err = err; err == nil {
		b.at, b.pauses = begun, found.pauses
		for name := range b.names {
			if _, ok := found.names[name]; !ok {
				found.names[name] = store.Record{Key: name}
			}
		}
		b.forget(found.sessions)
	}
	// What has been touched since is older in the list.
	for key, rec := range found.sessions {
		if b.sessions[key].seq <= seq {
			b.changeSession(rec, begun)
		}
	}
	for name, rec := range found.names {
		if b.names[name].seq <= seq {
			b.change(rec, begun)
		}
	}
	b.tell()
}

// touch looks at one name or session that this server has changed, if anybody watches.
func (b *board) touch(ctx context.Context, key string) {
	b.mu.Lock()
	idle := len(b.watchers) == 0
	_, stands := b.pauses[key]
	b.mu.Unlock()
	if idle || key == "" || lease.Reserved(key) && !isSession(key) {
		return
	}
	now := b.s.clk.Now()
	// What can't be read now, the next look will tell.
	ctx, cancel := clock.WithTimeout(ctx, b.s.clk, 10*boardPoll)
	defer cancel()
	rec, err := store.Load(ctx, b.s.st, key)
	if err != nil {
		return
	}
	var control store.Record
	if stands {
		if control, err = store.Load(ctx, b.s.st, election.KeyPrefix+key); err != nil {
			return
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if name, p, ok := readElection(control, b.s.clk.Wall()); ok {
		b.pauses[name] = p
	}
	if isSession(key) {
		b.changeSession(rec, now)
	} else {
		b.change(rec, now)
	}
	b.tell()
}

// change notes a name as it is. b.mu is held.
func (b *board) change(rec store.Record, now clock.Instant) {
	l := b.s.lease(rec)
	l.Paused = b.pauses[rec.Key]
	before, known := b.names[rec.Key]
	if known && before.version == rec.Version && before.lease.Waiters == l.Waiters && same(before.lease.Paused, l.Paused) {
		return
	}
	as := seen{key: rec.Key, version: rec.Version, lease: l, gone: rec.Version == "" && l.Paused == nil, at: now}
	if as.gone && !known {
		return
	}
	b.note(as)
	b.keep(rec.Key, l.Session, before.lease.Session)
}

// note puts a change behind the others. b.mu is held.
func (b *board) note(as seen) {
	b.seq++
	as.seq = b.seq
	switch {
	case as.session != nil:
		b.sessions[as.key] = as
	case as.gone:
		delete(b.names, as.key)
	default:
		b.names[as.key] = as
	}
	if len(b.past) == boardMemory {
		b.past = b.past[1:]
	}
	b.past = append(b.past, as)
}

// same reports whether two pauses are one.
func same(a, b *wire.Pause) bool {
	return a == b || a != nil && b != nil && a.By == b.By && a.Reason == b.Reason && a.Since.Equal(b.Since) && (a.Until == b.Until || a.Until != nil && b.Until != nil && a.Until.Equal(*b.Until))
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

// since returns the changes after seq of the names that begin with prefix, and of the sessions that keep those; or everything with
// reset when those are not known any more; and how old the knowledge is.
func (b *board) since(seq uint64, prefix string) (changes []told, last uint64, reset bool, age time.Duration, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.s.clk.Now()
	age, err, last = now.Sub(b.at), b.err, b.seq
	if oldest := b.seq - uint64(len(b.past)); seq == 0 || seq > b.seq || seq < oldest {
		for _, all := range []map[string]seen{b.sessions, b.names} {
			for _, s := range all {
				if s.seq = b.seq; b.concerns(s, prefix) {
					changes = append(changes, s.tell(now))
				}
			}
		}
		return changes, last, true, age, err
	}
	for _, s := range b.past {
		if s.seq > seq && b.concerns(s, prefix) {
			changes = append(changes, s.tell(now))
		}
	}
	return changes, last, false, age, err
}

// concerns reports whether a change is to be told to whoever watches names that begin with prefix. b.mu is held.
func (b *board) concerns(s seen, prefix string) bool {
	if s.session != nil {
		return b.keeps(s.key, prefix)
	}
	return strings.HasPrefix(s.key, prefix)
}
