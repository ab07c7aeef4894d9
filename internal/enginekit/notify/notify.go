// Package notify serves the Waits of an engine whose server tells of changes, but not reliably, or
// not always.
//
// All Waits of a handle share one subscription and one reader. What the subscription tells only
// says where to look. What a Wait returns was read. Each time the subscription begins, the reader
// reads everything that is waited for. When the subscription to one key begins, the reader reads
// that key. The reader also reads everything at intervals: seldom while the subscription stands,
// often while it doesn't. So a notification that is lost delays a Wait, and does no other harm.
//
// A Wait that goes on from what the last one has returned reads nothing first, while the
// subscription to its key stands and has told nothing since.
package notify

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

// Want is what a Wait waits for: that the stored version of Key is another one.
type Want struct{ Key, Version string }

// Result is what was read for a Want.
type Result struct {
	Changed bool         // the stored version is another one; otherwise Rec isn't set
	Rec     store.Record // Record{Key: key} for a key that is not stored
	Err     error        // this one can't be read
}

// Source is what an engine provides. Its methods are called by one goroutine each.
type Source interface {
	// Read looks at each of the wants, at most 500, and returns as many results, in their order. It
	// returns soon after ctx is done.
	Read(ctx context.Context, wants []Want) ([]Result, error)

	// Listen subscribes to changes of the keys that the ear names and blocks until that fails or
	// ctx is done. It returns [ErrDeaf] when the server will never tell.
	Listen(ctx context.Context, ear Ear) error
}

// Ear is what a [Source] tells what it hears. Its methods may be called from any goroutine, and
// don't block.
type Ear struct {
	w     *Waiters
	began func()
}

// Up says that the connection listens, from now on or again.
func (e Ear) Up() {
	e.began()
	e.w.setListening(true)
}

// Changed says that the key may have changed: the server told so.
func (e Ear) Changed(key string) { e.w.Changed(key) }

// Covers says that the server tells of this key, from now on until the key was one of those to end,
// or Listen returns.
func (e Ear) Covers(key string) { e.w.covers(key) }

// Next returns what has changed since the last call in which keys are to be listened to: those that
// somebody waits for, or did in the last half minute. The first call of a Listen returns all of
// them.
func (e Ear) Next() (begin, end []string) { return e.w.next() }

// More returns the channel, of capacity 1, that tells when Next has keys to begin with. Those to
// end with aren't told: a Source asks every few seconds.
func (e Ear) More() <-chan struct{} { return e.w.more }

// ErrDeaf is returned by a [Source] that can't listen. The Waits poll from then on.
var ErrDeaf = errors.New("the server tells of no changes")

// The pauses between two reads of everything that is waited for.
const (
	pollMin = 20 * time.Millisecond
	pollMax = time.Second
	netMin  = 5 * time.Second // while the subscription stands
	netMax  = 10 * time.Second
)

const (
	batch     = 500             // wants of one Read
	readLimit = 5 * time.Second // that one Read may take
	// After a Read that failed, and between two attempts to listen.
	retryMin = 250 * time.Millisecond
	// Failed Reads in a row, over some 5 s at least, after which the Waits end with the error.
	giveUp = 6
	linger = 30 * time.Second // that the subscription, or a key's, outlives the last Wait
	air    = 5 * time.Second  // between two looks for keys whose subscription is over
)

// Waiters are the Waits of one handle.
type Waiters struct {
	src     Source
	clk     clock.Clock
	ctx     context.Context // done when closed
	cancel  context.CancelFunc
	running sync.WaitGroup
	kick    chan struct{} // of capacity 1: something below has changed
	more    chan struct{} // of capacity 1: fresh has keys

	mu        sync.Mutex
	started   bool
	closed    bool
	byKey     map[string]map[*waiter]struct{}
	sought    map[string]*sought // keys to listen to
	fresh     map[string]bool    // those of them that the source hasn't been given
	aired     clock.Instant      // when it was looked for what nobody waits for any more
	told      map[string]bool    // keys that the server told of
	all       bool               // look at everything: the subscription has begun, or ended
	listening bool
}

// sought is a key to listen to.
type sought struct {
	idle    clock.Instant // since when nobody waits for it
	covered bool          // the server tells of it
	news    int           // how often it told
	known   bool          // the version was read, and the server has told nothing since
	version string
}

// waiter is one Wait.
type waiter struct {
	want   Want
	result chan Result // of capacity 1
}

// New returns a set with no waiters. It starts nothing before the first Wait.
func New(src Source) *Waiters {
	ctx, cancel := context.WithCancel(context.Background())
	return &Waiters{
		src: src, clk: clock.System(), ctx: ctx, cancel: cancel, kick: make(chan struct{}, 1), more: make(chan struct{}, 1),
		byKey: map[string]map[*waiter]struct{}{}, sought: map[string]*sought{}, fresh: map[string]bool{}, told: map[string]bool{},
	}
}

// Wait implements [store.Waiter]. read is the engine's own look at one want: the first look, with
// the caller's context, where one is needed.
func (w *Waiters) Wait(ctx context.Context, want Want, read func(context.Context) (store.Record, error)) (store.Record, error) {
	me := &waiter{want, make(chan Result, 1)}
	if !w.join(me) {
		return store.Record{}, store.ErrClosed
	}
	defer w.leave(me)
	// What changes from here on is told, or met by the read that follows when the subscription to
	// the key begins.
	if current, news := w.current(want); !current {
		rec, err := read(ctx)
		if err == nil {
			w.saw(want.Key, rec.Version, news)
		}
		if err != nil || rec.Version != want.Version {
			return rec, err
		}
	}
	if !w.start(want.Key) {
		return store.Record{}, store.ErrClosed
	}
	select {
	case r := <-me.result:
		return r.Rec, r.Err
	case <-ctx.Done():
		return store.Record{}, context.Cause(ctx)
	case <-w.ctx.Done():
		return store.Record{}, store.ErrClosed
	}
}

func (w *Waiters) join(me *waiter) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	set := w.byKey[me.want.Key]
	if set == nil {
		set = map[*waiter]struct{}{}
		w.byKey[me.want.Key] = set
	}
	set[me] = struct{}{}
	return !w.closed
}

func (w *Waiters) leave(me *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	set := w.byKey[me.want.Key]
	delete(set, me)
	if len(set) > 0 {
		return
	}
	delete(w.byKey, me.want.Key)
	if s := w.sought[me.want.Key]; s != nil {
		s.idle = w.clk.Now()
	}
	if !w.listening { // a source that is deaf asks for nothing, ever
		delete(w.sought, me.want.Key)
		delete(w.fresh, me.want.Key)
	}
}

// start has the goroutine run that serves the waiters, and the key be listened to.
func (w *Waiters) start(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	if w.sought[key] == nil {
		w.sought[key], w.fresh[key] = &sought{}, true
		select {
		case w.more <- struct{}{}:
		default:
		}
	}
	if !w.started {
		w.started = true
		w.running.Go(w.serve)
	}
	w.nudge()
	return true
}

func (w *Waiters) nudge() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// next is [Ear.Next].
func (w *Waiters) next() (begin, end []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	begin = slices.Collect(maps.Keys(w.fresh))
	clear(w.fresh)
	now := w.clk.Now()
	if now.Sub(w.aired) < air {
		return begin, nil
	}
	w.aired = now
	for key, s := range w.sought {
		if len(w.byKey[key]) == 0 && now.Sub(s.idle) >= linger {
			delete(w.sought, key)
			end = append(end, key)
		}
	}
	return begin, end
}

// restart has the next source be given all keys.
func (w *Waiters) restart() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key := range w.sought {
		w.fresh[key] = true
	}
}

func (w *Waiters) setListening(on bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.listening, w.all = on, true
	for _, s := range w.sought {
		s.covered, s.known = false, false
	}
	w.nudge()
}

// current reports whether a want is what was read last, of a key of which the server has told
// nothing since and would. Else news says what saw is to know of the read that follows.
func (w *Waiters) current(want Want) (current bool, news int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.sought[want.Key]
	if s == nil {
		return false, -1
	}
	return s.covered && s.known && s.version == want.Version, s.news
}

// saw takes down what a read has shown. It counts if the server has told nothing of the key since
// the read began, when it had told so often.
func (w *Waiters) saw(key, version string, news int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.sought[key]; s != nil && s.news == news {
		s.known, s.version = true, version
	}
}

func (w *Waiters) covers(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.sought[key]; s != nil {
		s.covered = true
	}
	w.changed(key)
}

// Changed has those who wait for the key look at it. An engine calls it for what its handle writes,
// too, where its server doesn't tell a connection of its own writes.
func (w *Waiters) Changed(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed(key)
}

// changed is Changed. w.mu is held.
func (w *Waiters) changed(key string) {
	if s := w.sought[key]; s != nil {
		s.known = false
		s.news++
	}
	if len(w.byKey[key]) > 0 {
		w.told[key] = true
		w.nudge()
	}
}

// Close ends all Waits with [store.ErrClosed] and waits for the goroutines. It may be called twice.
func (w *Waiters) Close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.cancel()
	w.running.Wait()
}

// asked is who is to be looked at for one want.
type asked struct {
	by   []*waiter
	news int // for saw
}

// take returns those who are to be looked at, everybody or those whose keys the server told of, and
// which of the two.
func (w *Waiters) take(everybody bool) (due map[Want]*asked, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	everybody = everybody || w.all
	due = map[Want]*asked{}
	for key, set := range w.byKey {
		if !everybody && !w.told[key] {
			continue
		}
		news := -1
		if s := w.sought[key]; s != nil {
			news = s.news
		}
		for me := range set {
			if due[me.want] == nil {
				due[me.want] = &asked{news: news}
			}
			due[me.want].by = append(due[me.want].by, me)
		}
	}
	w.all = false
	clear(w.told)
	return due, everybody
}

func (w *Waiters) state() (waiting, listening bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.byKey) > 0, w.listening
}

// jitter shortens d by up to a quarter.
func jitter(d time.Duration) time.Duration { return d - rand.N(d/4+1) }
