package flake

import (
	"errors"
	"fmt"
	"time"
)

// Generator makes ids of one layout for one node. Its methods may be called from any goroutine. A
// call that waits keeps no other from going on.
type Generator[T Value] struct {
	state *state
}

// New returns a generator for a node of a layout, which stamps times within a window. No two
// generators whose windows overlap may have the same node. T is [ID] for a layout of up to 64 bits,
// else [ID96].
func New[T Value](l Layout, node uint64, w Window, o Options) (*Generator[T], error) {
	if err := fits[T](l); err != nil {
		return nil, err
	}
	if err := l.holds(Node, node); err != nil {
		return nil, err
	}
	if w == nil {
		return nil, errors.New("no window: nothing would keep two processes with one node's number apart; there is Between for those that are alone")
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	return &Generator[T]{newState(l, node, w, o)}, nil
}

// Next returns an id that no other call has returned, or will. It blocks for [Options.MaxWait] at
// most. Its errors are a [WindowError], an [AheadError], an [ExhaustedError], or [ErrStopped].
func (g *Generator[T]) Next() (id T, err error) {
	s := g.state
	n, ok := s.step()
	switch {
	case !ok:
		return g.slow(n, 0)
	case s.simple:
		return idOf[T](s.packSimple(n)), nil
	case s.leading:
		if long, ok := any(&id).(*ID96); ok { // it always is
			s.leadingID(long, n)
			return id, nil
		}
	}
	return idOf[T](s.pack(n)), nil
}

// NextWith is Next, and puts metadata into the id. Metadata that doesn't fit is an [OverflowError].
func (g *Generator[T]) NextWith(metadata uint64) (id T, err error) {
	s := g.state
	if metadata > s.metaMax {
		return id, s.layout.holds(Metadata, metadata)
	}
	n, ok := s.step()
	switch {
	case !ok:
		return g.slow(n, metadata)
	case s.trailing:
		if long, ok := any(&id).(*ID96); ok { // it always is
			s.trailingID(long, n, metadata)
			return id, nil
		}
	}
	return idOf[T](s.pack(n).or(s.layout.parts[Metadata].put(metadata))), nil
}

func (g *Generator[T]) slow(mine, metadata uint64) (T, error) {
	n, _, err := g.state.take(1, mine)
	if err != nil {
		var none T
		return none, err
	}
	return idOf[T](g.state.pack(n).or(g.state.layout.parts[Metadata].put(metadata))), nil
}

// MaxN is how many ids NextN returns at most.
const MaxN = 1 << 20

// NextN returns n ids in the order in which they were made, 1 to [MaxN], or an error and none. It
// waits whenever there is no more room, for [Options.MaxWait] each time. So it may block as long as
// the layout needs to count to n.
func (g *Generator[T]) NextN(n int) ([]T, error) {
	if n < 1 || n > MaxN {
		return nil, fmt.Errorf("%d ids: want 1 to %d", n, MaxN)
	}
	ids := make([]T, 0, n)
	for len(ids) < n {
		first, count, err := g.state.take(uint64(n-len(ids)), noNumber)
		if err != nil {
			return nil, err
		}
		for i := range count {
			ids = append(ids, idOf[T](g.state.pack(first+i)))
		}
	}
	return ids, nil
}

// Ahead returns how far the newest id is ahead of the clock; 0 if it isn't, or if there is none
// yet.
func (g *Generator[T]) Ahead() time.Duration {
	s := g.state
	n := s.issued()
	if n == s.begin {
		return 0
	}
	return max(s.layout.start(int64((n-1)>>s.seqBits)).Sub(s.opts.Now()), 0)
}

// Used returns the earliest time at which a window may begin that shares no id with those made so
// far. That is the end of the newest id's unit of time, or the floor.
func (g *Generator[T]) Used() time.Time { return g.state.used() }

// Stop makes every call from now on fail, and returns what Used does: for good. What releases a
// node's number stores it.
func (g *Generator[T]) Stop() time.Time {
	g.state.stop()
	return g.state.used()
}
