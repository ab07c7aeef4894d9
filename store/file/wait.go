package file

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Wait implements [store.Waiter]. A write of this process wakes it directly, one of another process
// through the bell.
func (s *Store) Wait(ctx context.Context, key, version string) (store.Record, error) {
	return s.wait(ctx, key, version, false)
}

// WaitHolder implements [driver.Witness]. The end of the holder's process wakes it, too, without
// polling.
func (s *Store) WaitHolder(ctx context.Context, key, version string) (store.Record, error) {
	return s.wait(ctx, key, version, true)
}

func (s *Store) wait(ctx context.Context, key, version string, mourn bool) (store.Record, error) {
	if err := driver.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	// From here on a write is heard. One before is seen by the read that follows.
	w := s.waiters.join(key)
	defer s.waiters.leave(key, w)
	for {
		rec, holder, err := s.look(ctx, key)
		if err != nil || rec.Version != version || mourn && rec.Age == store.AgeGone {
			return rec, err
		}
		if !mourn {
			holder = ""
		}
		if err := s.heed(ctx, w, holder); err != nil {
			return store.Record{}, err
		}
	}
}

// heed blocks until there may be something to read: a change, or the end of the life of that name.
func (s *Store) heed(ctx context.Context, w *waiter, holder string) error {
	death := s.deaths.watch(holder)
	defer s.deaths.leave(death)
	select {
	case <-w.heard:
	case <-death.ended():
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.closing:
		return s.why()
	}
	return nil
}

// waiter is one Wait.
type waiter struct {
	heard chan struct{} // of capacity 1
}

func (w *waiter) wake() {
	select {
	case w.heard <- struct{}{}:
	default:
	}
}

// waiters are the Waits of a store.
type waiters struct {
	store *Store
	path  string // of the database
	bell  *bell
	net   time.Duration // netMin; tests take the safety net away
	kick  chan struct{} // of capacity 1: somebody waits

	mu     sync.Mutex
	byHash map[uint64]map[*waiter]struct{} // by hash of the key
	count  int
}

func newWaiters(s *Store) *waiters {
	ws := &waiters{store: s, path: s.path, net: netMin, kick: make(chan struct{}, 1), byHash: map[uint64]map[*waiter]struct{}{}}
	ws.bell = newBell(s.wakeDir, s.id, &s.running, ws.wake, ws.wakeAll)
	return ws
}

func (ws *waiters) join(key string) *waiter {
	w := &waiter{heard: make(chan struct{}, 1)}
	h := hash(key)
	ws.bell.listen(h)
	ws.mu.Lock()
	set := ws.byHash[h]
	if set == nil {
		set = map[*waiter]struct{}{}
		ws.byHash[h] = set
	}
	set[w] = struct{}{}
	ws.count++
	ws.mu.Unlock()
	select {
	case ws.kick <- struct{}{}:
	default:
	}
	return w
}

func (ws *waiters) leave(key string, w *waiter) {
	h := hash(key)
	ws.bell.ignore(h)
	ws.mu.Lock()
	defer ws.mu.Unlock()
	delete(ws.byHash[h], w)
	if len(ws.byHash[h]) == 0 {
		delete(ws.byHash, h)
	}
	ws.count--
}

func (ws *waiters) wake(h uint64) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for w := range ws.byHash[h] {
		w.wake()
	}
}

func (ws *waiters) wakeAll() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, set := range ws.byHash {
		for w := range set {
			w.wake()
		}
	}
}

// ring tells the waiters of all processes that the records under keys have changed.
func (ws *waiters) ring(keys []string) {
	if len(keys) == 0 {
		return
	}
	hashes := make([]uint64, len(keys))
	for i, key := range keys {
		hashes[i] = hash(key)
		ws.wake(hashes[i])
	}
	ws.bell.ring(hashes)
}

// The pauses between two looks at whether anything in the file has changed. With a bell they are a
// safety net, for a process that was killed after its commit and before it rang. Without one they
// are how a change is noticed.
const (
	netMin  = 5 * time.Second
	netMax  = 2 * netMin
	pollMin = 10 * time.Millisecond
	pollMax = 250 * time.Millisecond
)

// watch is the goroutine that looks, while somebody waits.
func (ws *waiters) watch() {
	defer ws.bell.close()
	look := looker{path: ws.path}
	defer look.close()
	pause := pollMin
	for ws.somebody() {
		if ws.bell.works() {
			pause = ws.net + rand.N(ws.net)
		}
		if !ws.sleep(pause) {
			return
		}
		if err := ws.store.place.moved(); err != nil {
			_ = ws.store.end(err)
			return
		}
		ws.bell.renew() // before the look: what changes after it is heard
		pause = min(pause*3/2, pollMax)
		if look.changed() {
			ws.wakeAll()
			pause = pollMin
		}
	}
}

// somebody blocks until there is a waiter, or a name in the wake folder to take away. It returns
// false when the store is closing.
func (ws *waiters) somebody() bool {
	for {
		ws.mu.Lock()
		count := ws.count
		ws.mu.Unlock()
		if count > 0 || ws.bell.lingers() {
			return true
		}
		select {
		case <-ws.kick:
		case <-ws.store.closing:
			return false
		}
	}
}

// sleep returns false when the store is closing. No deadline hangs on it, so a plain timer does:
// one of package clock looks once a second whether the machine was suspended, and 100 processes
// with nothing to do would use 2 % of a core on that.
func (ws *waiters) sleep(d time.Duration) bool {
	timer := time.NewTimer(d) //nolint:forbidigo // as said above
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ws.store.closing:
		return false
	}
}

// looker notices cheaply whether anything in the file has changed.
type looker struct {
	path string
	c    *conn // the number below is the connection's own
	last int64
}

// changed reports whether anything may have changed since the last call: also at the first one, and
// where it can't tell, so that whoever waits reads, and reports the error.
func (l *looker) changed() bool {
	if l.c == nil {
		c, err := dialReader(l.path)
		if err != nil {
			return true
		}
		l.c, l.last = c, -1
	}
	v, err := l.c.number("data_version")
	if err != nil {
		l.close()
		return true
	}
	changed := v != l.last
	l.last = v
	return changed
}

func (l *looker) close() {
	if l.c != nil {
		_ = l.c.close()
		l.c = nil
	}
}
