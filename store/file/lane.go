package file

import (
	"container/list"
	"context"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store/driver"
)

// lane is the way of one kind of write to the file lock. Of all processes only one of each lane
// stands in line for that lock; the others stand in line at the lane's gate. So a renewal has one
// taking before it at most, however many there are, and a process that has just been served gets in
// line behind all others of its lane.
type lane struct {
	gate *gate
	// The instant since when the lane waits for its turn and the file lock; 0 when it doesn't.
	since atomic.Int64
	queue list.List     // of *request; guarded by Store.mu
	kick  chan struct{} // of capacity 1
}

func (l *lane) open(dir, name string) {
	_ = makeDir(dir)
	l.gate = openGate(filepath.Join(dir, name+".gate"))
	l.kick = make(chan struct{}, 1)
}

// failAll takes every request out of the queue and answers it with err. Store.mu is held.
func (l *lane) failAll(err func(*request) error) {
	for e := l.queue.Front(); e != nil; e = l.queue.Front() {
		r := l.queue.Remove(e).(*request)
		r.place = nil
		r.answer(err(r))
	}
}

// request is one write on its way.
type request struct {
	key     string
	version string // what has to be stored for the write to be done
	next    string // the version that it makes
	body    string // "" deletes the row
	mark    string // see mark
	keeps   bool   // the holder that the row names stays as it is; else mark says all
	lane    *lane
	place   *list.Element // in the lane's queue; nil once taken. Guarded by Store.mu

	wrote  bool          // the open transaction holds the write
	result error         // why it doesn't
	err    error         // the outcome, when answered
	done   chan struct{} // closed by answer
}

func (r *request) answer(err error) {
	r.err = err
	close(r.done)
}

// patience is how long a caller whose ctx is done waits for the answer to a write that is being
// done: it is near as a rule, and better than an unknown outcome.
const patience = 20 * time.Millisecond

// submit queues a write and waits for its outcome.
func (s *Store) submit(ctx context.Context, r *request) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	r.done = make(chan struct{})
	s.mu.Lock()
	if s.closed() {
		defer s.mu.Unlock()
		return s.refusal(r)
	}
	r.place = r.lane.queue.PushBack(r)
	s.mu.Unlock()
	r.lane.poke()

	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
	}
	if s.withdraw(r) {
		return s.delayed(context.Cause(ctx))
	}
	timer := clock.NewTimer(s.clock, patience)
	defer timer.Stop()
	select {
	case <-r.done:
		return r.err
	case <-timer.C:
		return driver.Unknown(r.key, s.delayed(context.Cause(ctx)))
	}
}

// poke makes the lane's goroutine look at the queue.
func (l *lane) poke() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

// withdraw takes r out of the queue, and reports whether it was still there.
func (s *Store) withdraw(r *request) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.place == nil {
		return false
	}
	r.lane.queue.Remove(r.place)
	r.place = nil
	return true
}

// Bounds of a batch. They bound how long the file lock is held.
const (
	maxBatch      = 128
	maxBatchBytes = 1 << 20
)

// gather lets callers that were just answered queue what they want next, as long as more comes of
// it: so one transaction, and its sync, serve more of them. It returns how many there are. Without
// others that run it takes less than a microsecond.
func (s *Store) gather() int {
	for before := -1; ; {
		now := s.queued()
		if now == before || now >= maxBatch {
			return now
		}
		before = now
		runtime.Gosched()
	}
}

func (s *Store) queued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.terms.queue.Len() + s.takings.queue.Len()
}

// take takes a batch from the queues: writes that keep a term first.
func (s *Store) take() []*request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var batch []*request
	size := 0
	for _, l := range []*lane{&s.terms, &s.takings} {
		for e := l.queue.Front(); e != nil && len(batch) < maxBatch && size < maxBatchBytes; e = l.queue.Front() {
			r := l.queue.Remove(e).(*request)
			r.place = nil
			size += len(r.body)
			batch = append(batch, r)
		}
	}
	return batch
}

func (s *Store) pending(l *lane) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return l.queue.Len() > 0
}

// serve is the goroutine of a lane.
func (s *Store) serve(l *lane) {
	for {
		select {
		case <-l.kick:
		case <-s.closing:
			return
		}
		for s.pending(l) {
			s.serveBatch(l)
		}
	}
}
