package server

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/internal/kinds"
	"github.com/leasehold/leasehold/internal/turns"
	"github.com/leasehold/leasehold/store"
)

const (
	// The store is looked at every boardPoll while anybody watches; what this server itself changes
	// is seen at once.
	boardPoll = time.Second
	// boardLinger is how long the board looks on when the last watcher has left: who reconnects
	// then costs no look of its own.
	boardLinger = 10 * time.Second
	// boardRest is how long the board lets changes gather once it has told some, and boardRestEach
	// how long a watcher does, for each that there is: each telling costs a write to a connection.
	boardRest     = 10 * time.Millisecond
	boardRestEach = time.Millisecond
	// boardReads is how many names that this server has changed are read at a time.
	boardReads = 8
)

// board knows the state of every name and tells watchers its changes, while there are watchers.
// Requests never wait for it: they leave the name that they have changed with the bell, and
// watchers read the news, which don't change.
type board struct {
	s    *Server
	bell bell
	news atomic.Pointer[news]

	door           *line // of those who come
	line           *line // of those who are told more than a piece
	whole, changes *pace // of what they are sent, and of what all others are

	encoded, resets, sent atomic.Int64 // states encoded, whole states told, bytes sent
	size                  atomic.Int64 // names that were found when all were looked at last

	// What follows is for the board's own goroutines, with mu held, which no request ever takes.
	mu       sync.Mutex
	names    map[string]*item
	sessions map[string]*item
	kept     map[string]int          // how many names each session keeps
	pauses   map[string]*api.Pause   // of elections, by their names
	turns    map[string][]turns.Turn // of jobs, by their names, as of the last look at all
	seq      uint64                  // of the last change
	// The changes since from, in order; one that another one has followed may be missing.
	past   []*item
	from   uint64
	looked bool // at all names
	view   *view
	err    error // why the store couldn't be looked at; nil when it could
	at     clock.Instant
	wg     sync.WaitGroup
}

// bell is what requests and watchers ring. It is held for a moment only.
type bell struct {
	mu       sync.Mutex
	watchers int
	resident int           // of these, the journal's: 1 or 0
	left     clock.Instant // when the last watcher left
	// Names that this server has changed, not read yet; nil while the board rests.
	touched map[string]struct{}
	stop    context.CancelFunc // of the board's goroutines
	closed  bool
	rung    chan struct{} // of capacity 1
}

func newBoard(s *Server) *board {
	b := &board{s: s, bell: bell{rung: make(chan struct{}, 1)}, door: &line{}, line: &line{}, whole: newPace(s.clk, watchBytes), changes: newPace(s.clk, watchBytes)}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.blank()
	return b
}

// blank forgets everything: who has been told something before has to be told all again. b.mu is
// held.
func (b *board) blank() {
	b.names, b.sessions, b.kept, b.pauses, b.turns = map[string]*item{}, map[string]*item{}, map[string]int{}, map[string]*api.Pause{}, nil
	b.seq++ // 0 is that of a watcher who has been told nothing
	b.past, b.from, b.looked, b.view, b.err, b.at = nil, b.seq, false, nil, nil, b.s.clk.Now()
	b.publish()
}

// join adds a watcher. It doesn't block.
func (b *board) join() {
	b.bell.mu.Lock()
	defer b.bell.mu.Unlock()
	b.bell.watchers++
	if b.bell.touched != nil || b.bell.closed {
		return
	}
	b.bell.touched = map[string]struct{}{}
	ctx, cancel := context.WithCancel(b.s.closing)
	b.bell.stop = cancel
	b.wg.Go(func() { b.looks(ctx) })
	b.wg.Go(func() { b.reads(ctx) })
}

// leave takes a watcher away. A while after the last one the board rests.
func (b *board) leave() {
	b.bell.mu.Lock()
	defer b.bell.mu.Unlock()
	b.bell.watchers--
	b.bell.left = b.s.clk.Now()
}

// watched returns how many watch.
func (b *board) watched() int {
	b.bell.mu.Lock()
	defer b.bell.mu.Unlock()
	return b.bell.watchers - b.bell.resident
}

// rest has the board rest if nobody has watched for a while, and reports whether it does.
func (b *board) rest() bool {
	if !b.idle(func() {}) {
		return false
	}
	b.mu.Lock()
	b.blank() // nobody is told later what was known now
	b.mu.Unlock()
	return b.idle(func() {
		b.bell.stop()
		b.bell.touched = nil
	})
}

// idle reports whether nobody has watched for a while, and calls do then, before anybody joins.
func (b *board) idle(do func()) bool {
	b.bell.mu.Lock()
	defer b.bell.mu.Unlock()
	if b.bell.watchers > 0 || b.s.clk.Now().Sub(b.bell.left) < boardLinger {
		return false
	}
	do()
	return true
}

// close waits until the board rests; the server closes.
func (b *board) close() {
	b.bell.mu.Lock()
	b.bell.closed = true
	b.bell.mu.Unlock()
	b.wg.Wait()
}

// touch has the board look at a name or session that this server has changed. It never blocks.
func (b *board) touch(key string) {
	if key == "" || keyspace.Reserved(key) && !isSession(key) {
		return
	}
	b.bell.mu.Lock()
	defer b.bell.mu.Unlock()
	// The journal waits for the next look.
	if b.bell.touched == nil || b.bell.watchers == b.bell.resident {
		return
	}
	b.bell.touched[key] = struct{}{}
	select {
	case b.bell.rung <- struct{}{}:
	default:
	}
}

// looks looks at the store now and then, until the board rests.
func (b *board) looks(ctx context.Context) {
	for {
		b.look(ctx)
		if clock.Sleep(ctx, b.s.clk, boardPoll) != nil || b.rest() {
			return
		}
	}
}

// reads reads what this server has changed, until the board rests.
func (b *board) reads(ctx context.Context) {
	for {
		select {
		case <-b.bell.rung:
		case <-ctx.Done():
			return
		}
		b.bell.mu.Lock()
		keys := b.bell.touched
		if keys != nil {
			b.bell.touched = map[string]struct{}{}
		}
		b.bell.mu.Unlock()
		b.readAll(ctx, keys)
		if clock.Sleep(ctx, b.s.clk, boardRest) != nil {
			return
		}
	}
}

// readAll reads names and sessions that this server has changed, and tells what has become of them.
func (b *board) readAll(ctx context.Context, keys map[string]struct{}) {
	todo := make(chan string, len(keys))
	for key := range keys {
		todo <- key
	}
	close(todo)
	var readers sync.WaitGroup
	for range min(len(keys), boardReads) {
		readers.Go(func() {
			for key := range todo {
				b.read(ctx, key)
			}
		})
	}
	readers.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if ctx.Err() == nil {
		b.publish()
	}
}

// read reads one name or session. What can't be read now, the next look will tell.
func (b *board) read(ctx context.Context, key string) {
	p := b.s.newPatience(ctx)
	defer p.end()
	b.mu.Lock()
	_, stands := b.pauses[key]
	before := b.known(key)
	b.mu.Unlock()
	now := b.s.clk.Now()
	rec, err := store.Load(p.ctx, b.s.st, key)
	if err != nil {
		return
	}
	var control store.Record
	if stands {
		if control, err = store.Load(p.ctx, b.s.st, kinds.Elections+key); err != nil {
			return
		}
	}
	if !b.apply(ctx, key, before, rec, control, now) {
		b.touch(key)
	}
}

// apply notes what was read of a name or session of which before was known. It reports false when a
// look has seen it meanwhile: before that read, or after it.
func (b *board) apply(ctx context.Context, key string, before *item, rec, control store.Record, now clock.Instant) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ctx.Err() != nil { // the board rests
		return true
	}
	if b.known(key) != before {
		return false
	}
	if name, _, p, ok := readElection(control, b.s.clk.Wall()); ok {
		b.pauses[name] = p
	}
	if isSession(key) {
		b.changeSession(rec, now)
	} else {
		b.change(rec, now)
	}
	return true
}

// known returns what is known of a name or session, or nil. b.mu is held.
func (b *board) known(key string) *item {
	if isSession(key) {
		return b.sessions[key]
	}
	return b.names[key]
}

// look compares the store with what was seen.
func (b *board) look(ctx context.Context) {
	p := b.s.newPatience(ctx)
	defer p.end()
	b.mu.Lock()
	begun, seq := b.s.clk.Now(), b.seq
	b.mu.Unlock()
	found, err := b.s.survey(p.ctx, "", true)
	if err == nil {
		err = b.loadSessions(p.ctx, b.missing(found), found)
	}
	if err == nil {
		b.s.chronicle.take(found)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err = err; err == nil {
		b.looked, b.at, b.pauses, b.turns = true, begun, found.pauses, found.turns
		for name := range b.names {
			if _, ok := found.names[name]; !ok {
				found.names[name] = store.Record{Key: name}
			}
		}
		b.forget(found.sessions)
	}
	// What has been read since is older in the list.
	for key, rec := range found.sessions {
		if before := b.sessions[key]; before == nil || before.seq <= seq {
			b.changeSession(rec, begun)
		}
	}
	for name, rec := range found.names {
		if before := b.names[name]; before == nil || before.seq <= seq {
			b.change(rec, begun)
		}
	}
	b.publish()
}

// change notes a name as it is. b.mu is held.
func (b *board) change(rec store.Record, now clock.Instant) {
	before, waiters, paused, turn := b.names[rec.Key], b.s.reg.Queued(rec.Key), b.pauses[rec.Key], latest(b.turns[rec.Key])
	if before != nil && before.version == rec.Version && before.waiters == waiters && same(before.paused, paused) && before.turn == turn {
		return
	}
	l := b.s.lease(rec)
	l.Paused, l.Waiters = paused, waiters
	l.AddTurns(b.turns[rec.Key])
	as := &item{key: rec.Key, version: rec.Version, at: now, waiters: waiters, paused: paused, turn: turn, keeper: l.Session, left: l.ExpiresIn}
	as.gone = rec.Version == "" && paused == nil && turn == turnMark{}
	if as.gone && before == nil {
		return
	}
	l.ExpiresIn = nil
	b.encoded.Add(1)
	as.encode(api.Event{Lease: l, Gone: as.gone})
	b.note(as, before)
	if before == nil {
		b.keep(as.keeper, "")
	} else {
		b.keep(as.keeper, before.keeper)
	}
}

// note puts a change behind the others: as follows before, if that isn't nil. b.mu is held.
func (b *board) note(as, before *item) {
	b.seq++
	as.seq = b.seq
	if before != nil {
		before.next.Store(b.seq)
	}
	switch {
	case as.session:
		b.sessions[as.key] = as
	case as.gone:
		delete(b.names, as.key)
	default:
		b.names[as.key] = as
	}
	if len(b.past) >= b.memory() {
		b.forgetPast()
	}
	b.past = append(b.past, as)
}

// forgetPast drops the changes that others have followed, and the oldest ones if these are still
// too many. b.mu is held.
func (b *board) forgetPast() {
	past := make([]*item, 0, len(b.past)) // watchers read the other one
	for _, i := range b.past {
		if i.next.Load() == 0 {
			past = append(past, i)
		}
	}
	if over := len(past) - b.memory()*3/4; over > 0 {
		b.from = past[over-1].seq
		past = past[over:]
	}
	b.past = past
}

// memory is how many changes are remembered: who has missed no more is told these, and not
// everything again.
func (b *board) memory() int { return max(boardMemory, 2*len(b.names)) }

const boardMemory = 4096

// publish tells what there is to tell. b.mu is held.
func (b *board) publish() {
	if b.looked && (b.view == nil || b.seq-b.view.seq > uint64(b.memory()/4)) {
		b.view = newView(b.names, b.sessions, b.seq)
	}
	before := b.news.Swap(&news{seq: b.seq, past: b.past, from: b.from, view: b.view, at: b.at, err: b.err, next: make(chan struct{})})
	if before != nil {
		close(before.next)
	}
}
