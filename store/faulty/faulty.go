// Package faulty puts a bad network between a test and a store.
//
// [Wrap] returns a store whose every operation first asks a [Plan] what happens to it. The plan may
// delay it on the way there or back, drop the request, or lose the reply. It may also let a write
// arrive long after the caller gave up, or twice. The store reports the outcome of a write that
// goes wrong as the contract demands: unknown, unless the request was refused.
//
// [NewPair] returns a store that fails over. When the primary dies before its replica heard of a
// write, that write is lost, although the primary applied it and showed it to reads.
//
// Delays are the network's, so they pass in true time, as package time measures it. In a
// [testing/synctest] bubble that is virtual time. It is never the time of one node's clock, which
// may be wrong or paused.
package faulty

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Kind is the kind of an operation.
type Kind string

// The kinds. A Wait is two operations: the request, and the push that answers it. The push gets its
// own [Op] when it is there.
const (
	Get    Kind = "get"
	Put    Kind = "put"
	Delete Kind = "delete"
	List   Kind = "list"
	Wait   Kind = "wait"
	Push   Kind = "push"
)

// Op is an operation that is about to be sent or, if it is a [Push], answered.
type Op struct {
	Seq  int    // 1 for the first operation of the wrapper
	Nth  int    // 1 for the first operation of its Kind
	Kind Kind   // what is about to be done
	Key  string // or the prefix of a List

	// Record is what a Put writes and a Push reports. Of the other kinds it has Key and Version
	// only.
	Record store.Record
}

// Fault is what happens to one operation. The zero Fault is none. Fields may be combined. Err and
// Drop come before the others, and only Delay comes before them.
type Fault struct {
	Delay      time.Duration // before the request arrives
	ReplyDelay time.Duration // between the store's answer and the caller's reading it

	Err  error // the request is refused: not done, with this error
	Drop bool  // the request never arrives; the caller learns that only when its context ends

	// Restored is for a Drop of a Wait or a Push. Once the channel is closed, the connection is
	// back and the wait resumes, like the waits of engines that reconnect.
	Restored <-chan struct{}

	LoseReply bool // the store carries out the request, and the caller gets no answer

	// ApplyLate, when above 0, is how long after Delay the request of a write arrives. The caller
	// learns nothing of its outcome. With ApplyTwice it is how long after the first copy the second
	// one arrives. On a read it is LoseReply.
	ApplyLate  time.Duration
	ApplyTwice bool // a write reaches the store twice; the caller gets the answer to the first copy

	// Silent makes a caller that gets no answer hang until its context ends, as with a connection
	// that died quietly. Without Silent, as with a reset, the call fails as soon as the request was
	// carried out (LoseReply) or sent (ApplyLate).
	Silent bool
}

// Plan decides on the fault of each operation. It is called for each operation, by many goroutines
// at a time. A nil Plan has no faults.
type Plan func(Op) Fault

// ErrLost is the cause that a call reports when the connection broke before the answer came.
var ErrLost = errors.New("connection lost")

// lateLimit bounds a delivery whose caller is gone, so that Close ends on a store that has stopped
// answering.
const lateLimit = time.Minute

// Store is a store behind a bad network. It implements [store.Store] and [store.Waiter], whether
// the inner store pushes or has to be polled.
type Store struct {
	inner store.Store
	life  context.Context // ended by Close
	end   context.CancelCauseFunc

	mu    sync.Mutex
	plan  Plan
	seq   int
	count map[Kind]int
	done  bool // Close was called
	late  sync.WaitGroup
}

var (
	_ store.Store  = (*Store)(nil)
	_ store.Waiter = (*Store)(nil)
)

// Wrap returns inner behind a network that does what plan says. The wrapper owns inner: closing it
// closes inner.
func Wrap(inner store.Store, plan Plan) *Store {
	life, end := context.WithCancelCause(context.Background())
	return &Store{inner: inner, life: life, end: end, plan: plan, count: map[Kind]int{}}
}

// SetPlan replaces the plan for operations that begin from now on.
func (s *Store) SetPlan(plan Plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plan = plan
}

// Count returns how many operations of that kind callers have asked the wrapper for, whatever
// became of them. It doesn't count operations whose context was done before they began.
func (s *Store) Count(kind Kind) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count[kind]
}

// Close blocks until the writes that are still on their way have arrived, however late the plan
// wants them. Then it closes the inner store. It first releases callers that hang.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.done {
		s.mu.Unlock()
		return nil
	}
	s.done = true
	s.end(store.ErrClosed)
	s.mu.Unlock()
	s.late.Wait()
	return s.inner.Close()
}

// begin numbers an operation and asks the plan about it.
func (s *Store) begin(ctx context.Context, kind Kind, rec store.Record) (Fault, error) {
	if ctx.Err() != nil {
		return Fault{}, context.Cause(ctx)
	}
	s.mu.Lock()
	if s.done {
		s.mu.Unlock()
		return Fault{}, store.ErrClosed
	}
	s.seq++
	s.count[kind]++
	op := Op{Seq: s.seq, Nth: s.count[kind], Kind: kind, Key: rec.Key, Record: rec}
	plan := s.plan
	s.mu.Unlock()
	if plan == nil {
		return Fault{}, nil
	}
	return plan(op), nil
}

// sleep passes d of true time, or less when ctx ends or the wrapper is closed: then it returns why.
func (s *Store) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.life.Done():
		return store.ErrClosed
	}
}

// hang returns nil when restored is closed, and otherwise why the caller has to give up.
func (s *Store) hang(ctx context.Context, restored <-chan struct{}) error {
	select {
	case <-restored:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.life.Done():
		return store.ErrClosed
	}
}

// request passes what comes before a request arrives. An error says why it doesn't.
func (s *Store) request(ctx context.Context, f Fault) error {
	if err := s.sleep(ctx, f.Delay); err != nil {
		return err
	}
	if f.Err != nil {
		return f.Err
	}
	if f.Drop {
		return s.hang(ctx, nil)
	}
	return nil
}

// reply passes what comes between the store's answer and its reader. An error says why the answer
// doesn't arrive.
func (s *Store) reply(ctx context.Context, f Fault) error {
	switch {
	case (f.LoseReply || f.ApplyLate > 0 && !f.ApplyTwice) && f.Silent:
		return s.hang(ctx, nil)
	case f.LoseReply || f.ApplyLate > 0 && !f.ApplyTwice:
		return ErrLost
	}
	return s.sleep(ctx, f.ReplyDelay)
}

// Get implements [store.Store].
func (s *Store) Get(ctx context.Context, key string) (store.Record, error) {
	f, err := s.begin(ctx, Get, store.Record{Key: key})
	if err != nil {
		return store.Record{}, err
	}
	if err := s.request(ctx, f); err != nil {
		return store.Record{}, err
	}
	rec, err := s.inner.Get(ctx, key)
	if lost := s.reply(ctx, f); lost != nil {
		return store.Record{}, lost
	}
	return rec, err
}

// Confirm implements [store.Confirmer] by [store.Confirm] on the inner store, with the faults of a
// Get.
func (s *Store) Confirm(ctx context.Context, key string) (store.Record, error) {
	f, err := s.begin(ctx, Get, store.Record{Key: key})
	if err == nil {
		err = s.request(ctx, f)
	}
	if err != nil {
		return store.Record{}, err
	}
	rec, err := store.Confirm(ctx, s.inner, key)
	if lost := s.reply(ctx, f); lost != nil {
		return store.Record{}, lost
	}
	if err == nil && rec.Version == "" {
		err = driver.NotFound(key)
	}
	return rec, err
}

// List implements [store.Store]. The fault is that of the beginning of the iteration.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		f, err := s.begin(ctx, List, store.Record{Key: prefix})
		if err == nil {
			err = s.request(ctx, f)
		}
		if err == nil {
			err = s.reply(ctx, f)
		}
		if err != nil {
			yield(store.Record{}, err)
			return
		}
		for rec, err := range s.inner.List(ctx, prefix) {
			if !yield(rec, err) {
				return
			}
		}
	}
}

// Wait implements [store.Waiter] by [store.Wait] on the inner store. It may outlast an outage: see
// Fault.Restored.
func (s *Store) Wait(ctx context.Context, key, version string) (store.Record, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// Close reaches the inner store only later.
	stop := context.AfterFunc(s.life, func() { cancel(store.ErrClosed) })
	defer stop()
	for {
		f, err := s.begin(ctx, Wait, store.Record{Key: key, Version: version})
		if err == nil {
			err = s.waitFault(ctx, f)
		}
		if errors.Is(err, errAgain) {
			continue
		}
		if err != nil {
			return store.Record{}, err
		}
		rec, waitErr := store.Wait(ctx, s.inner, key, version)
		if waitErr != nil {
			return store.Record{}, waitErr
		}
		if f, err = s.begin(ctx, Push, rec); err == nil {
			err = s.waitFault(ctx, f)
		}
		if !errors.Is(err, errAgain) {
			return rec, err
		}
	}
}

// errAgain says that the connection was cut and is back.
var errAgain = errors.New("connection restored")

// waitFault passes the fault of one half of a Wait.
func (s *Store) waitFault(ctx context.Context, f Fault) error {
	if f.Drop && f.Restored != nil {
		if err := s.hang(ctx, f.Restored); err != nil {
			return err
		}
		return errAgain
	}
	if err := s.request(ctx, f); err != nil {
		return err
	}
	return s.reply(ctx, f)
}

// Properties returns the properties of the inner store.
func (s *Store) Properties() store.Properties { return store.Describe(s.inner) }
