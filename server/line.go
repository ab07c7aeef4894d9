package server

import "sync"

// line lets one watcher at a time come in, or send what takes more than a piece, in the order in
// which they came: a crowd that comes at once is told everything one after the other, so that
// requests never run beside hundreds of writers.
type line struct {
	mu      sync.Mutex
	taken   bool    // somebody has a turn
	waiting []*turn // in order; those who have gone are passed over
}

// turn is a place in the line, and then a turn.
type turn struct {
	of   *line
	come chan struct{} // closed when it has come
	over bool          // with of.mu held
}

// join takes the last place. The turn has to be ended, whether it has come or not.
func (l *line) join() *turn {
	t := &turn{of: l, come: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, t)
	l.next()
	return t
}

// length is how many wait, and how many have gone since they did.
func (l *line) length() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting)
}

// end ends the turn, or gives up the place. To do so again does nothing.
func (t *turn) end() {
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	if t.over {
		return
	}
	t.over = true
	select {
	case <-t.come:
		t.of.taken = false
		t.of.next()
	default:
	}
}

// next lets the first come, if nobody has a turn. l.mu is held.
func (l *line) next() {
	for !l.taken && len(l.waiting) > 0 {
		first := l.waiting[0]
		l.waiting[0], l.waiting = nil, l.waiting[1:]
		if !first.over {
			l.taken = true
			close(first.come)
		}
	}
}
