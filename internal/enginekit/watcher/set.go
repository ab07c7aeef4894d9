package watcher

import (
	"container/list"
	"context"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Kind is what the watches of a [Set] are.
type Kind[W any] struct {
	// Begin returns a watch on key. ctx ends when the watch does. Begin is called with the lock of
	// the Set: it doesn't block, and calls no method of this Set.
	Begin func(ctx context.Context, key string) W
	// Serve, where an engine has it, runs in a goroutine of the watch's own until ctx ends.
	Serve func(ctx context.Context, key string, w W)
	// End, where an engine has it, is called when a watch that nobody waits on ends, as Begin is.
	End func(w W)

	// Linger is for how long a watch outlives its last Wait: 0 for not at all, [Forever] without an
	// end. A caller that follows a record waits again at once, and finds the watch unbroken.
	Linger time.Duration
	// MaxIdle is how many watches that nobody waits on there are at most, where Linger isn't 0.
	// Beyond, the one that was left first ends.
	MaxIdle int
	Clock   clock.Clock
}

// Forever is a Linger without an end.
const Forever time.Duration = 1<<63 - 1

// Set has the watches of one store, by key. All who wait for a key share a watch. Its methods may
// be called from any goroutine.
type Set[W any] struct {
	kind    Kind[W]
	life    context.Context // ends with End, under mu: no watch begins after it
	stop    context.CancelFunc
	running sync.WaitGroup

	mu       sync.Mutex // guards what follows
	byKey    map[string]*member[W]
	idle     list.List // of members that nobody waits on, the one that was left first in front
	retiring bool      // a goroutine ends those that have been idle for long
}

// member is a watch of a Set.
type member[W any] struct {
	key     string
	watch   W
	cancel  context.CancelFunc
	waiters int
	idle    *list.Element // its place while nobody waits
	left    clock.Instant // when the last one left
}

// NewSet returns a set without a watch. It starts nothing before the first Join. The contexts of
// its watches have the values of ctx.
func NewSet[W any](ctx context.Context, kind Kind[W]) *Set[W] {
	s := &Set[W]{kind: kind, byKey: map[string]*member[W]{}}
	s.life, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	return s
}

// Life returns the context that ends with the set.
func (s *Set[W]) Life() context.Context { return s.life }

// Ready is [Ready] of the set.
func (s *Set[W]) Ready(ctx context.Context) error { return Ready(ctx, s.life.Done()) }

// Ready returns why no operation may begin: [store.ErrClosed] when closing is closed, the cause
// when ctx is done.
func Ready(ctx context.Context, closing <-chan struct{}) error {
	select {
	case <-closing:
		return store.ErrClosed
	default:
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Join returns the watch on key, which begins if there is none, for one waiter more, until that one
// calls leave, once. It returns [store.ErrClosed] after End.
func (s *Set[W]) Join(key string) (w W, leave func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() != nil {
		return w, nil, store.ErrClosed
	}
	m := s.byKey[key]
	if m == nil {
		ctx, cancel := context.WithCancel(s.life)
		m = &member[W]{key: key, watch: s.kind.Begin(ctx, key), cancel: cancel}
		s.byKey[key] = m
		if s.kind.Serve != nil {
			s.running.Go(func() { s.kind.Serve(ctx, key, m.watch) })
		}
	}
	if m.idle != nil {
		s.idle.Remove(m.idle)
		m.idle = nil
	}
	m.waiters++
	return m.watch, func() { s.leave(m) }, nil
}

func (s *Set[W]) leave(m *member[W]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.waiters--; m.waiters > 0 || s.life.Err() != nil {
		return
	}
	m.left, m.idle = s.kind.Clock.Now(), s.idle.PushBack(m)
	switch {
	case s.kind.Linger == 0:
		s.end(m)
	case s.idle.Len() > s.kind.MaxIdle:
		s.end(s.idle.Front().Value.(*member[W]))
	}
	if s.idle.Len() > 0 && !s.retiring && s.kind.Linger != Forever {
		s.retiring = true
		s.running.Go(s.retire)
	}
}

// end ends an idle watch. mu is held.
func (s *Set[W]) end(m *member[W]) {
	s.idle.Remove(m.idle)
	m.cancel()
	delete(s.byKey, m.key)
	if s.kind.End != nil {
		s.kind.End(m.watch)
	}
}

// retire ends watches that have been idle for long, until none is idle or the set has ended.
func (s *Set[W]) retire() {
	for pause := s.kind.Linger; pause > 0; pause = s.endIdle() {
		if clock.Sleep(s.life, s.kind.Clock, pause) != nil {
			return
		}
	}
}

// endIdle ends the watches that have been idle for long, and returns when to look again: 0 for
// never, none is idle.
func (s *Set[W]) endIdle() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	for now := s.kind.Clock.Now(); s.idle.Len() > 0; {
		first := s.idle.Front().Value.(*member[W])
		if rest := s.kind.Linger - now.Sub(first.left); rest > 0 {
			return rest
		}
		s.end(first)
	}
	s.retiring = false
	return 0
}

// Retire ends the watch on key if nobody waits on it, and reports whether there is none any more. A
// Serve calls it that ends by itself.
func (s *Set[W]) Retire(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.byKey[key]
	if m != nil && m.idle == nil {
		return false
	}
	if m != nil {
		s.end(m)
	}
	return true
}

// Get returns the watch on key, if there is one.
func (s *Set[W]) Get(key string) (w W, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.byKey[key]; m != nil {
		return m.watch, true
	}
	return w, false
}

// All returns all watches there are.
func (s *Set[W]) All() []W {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]W, 0, len(s.byKey))
	for _, m := range s.byKey {
		all = append(all, m.watch)
	}
	return all
}

// Len returns how many watches there are.
func (s *Set[W]) Len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byKey)
}

// Waiters returns how many wait for key.
func (s *Set[W]) Waiters(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.byKey[key]; m != nil {
		return m.waiters
	}
	return 0
}

// Go calls f in a goroutine that Close waits for, unless the set has ended. f ends soon after Life
// does.
func (s *Set[W]) Go(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.life.Err() == nil {
		s.running.Go(f)
	}
}

// End ends all watches and Waits. It doesn't block. It may be called twice.
func (s *Set[W]) End() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop()
}

// Close is End, and waits for the goroutines. It may be called twice.
func (s *Set[W]) Close() {
	s.End()
	s.running.Wait()
}

// waiting is a watch that a Wait can be at, as a [Watch] is.
type waiting interface {
	Wait(ctx, life context.Context, version string, r Reader) (store.Record, error)
}

// Wait is [store.Waiter]'s, at the watch of the set for key.
func Wait[W waiting](ctx context.Context, s *Set[W], key, version string, r Reader) (store.Record, error) {
	if err := driver.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	if err := s.Ready(ctx); err != nil {
		return store.Record{}, err
	}
	w, leave, err := s.Join(key)
	if err != nil {
		return store.Record{}, err
	}
	defer leave()
	return w.Wait(ctx, s.life, version, r)
}

// Within returns a context that ends with ctx, and with life, a store's. Then its cause is
// [store.ErrClosed]. So a read under way, too, ends with Close.
func Within(ctx, life context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(life, func() { cancel(store.ErrClosed) })
	return ctx, func() { stop(); cancel(nil) }
}
