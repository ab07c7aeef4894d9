package shard

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/sessions"
	"github.com/leasehold/leasehold/internal/shardmap"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// Worker is what a worker is, and what it does with slices. All callbacks may be nil. Those of one
// slice are called one after the other, in a goroutine of the slice's own.
type Worker struct {
	Name     string            // human-readable; the manager's owner id by default
	Address  string            // where callers reach the worker
	Zone     string            // where the worker is
	Capacity float64           // in proportion to that of the others; 1 by default
	Labels   map[string]string // for pins

	// Prepare is called when a slice is to come to this worker, while another one still owns it:
	// to warm a cache, or to fetch state. The slice isn't this worker's. The present owner drains
	// when Prepare has returned, or after PrepareWithin, the TTL by default. The context ends when
	// the slice isn't to come any more, or has come.
	Prepare       func(ctx context.Context, s *Slice)
	PrepareWithin time.Duration

	// Start is called when the worker owns the slice. [Owner.Check] passes once Start has returned
	// nil; the slice's own Check passes from before. The context ends before the validity does,
	// StopMargin before it, and when the slice has been drained. After an error the slice is
	// stopped, and goes to another worker if there is one.
	Start func(ctx context.Context, s *Slice) error

	// Drain is called when the slice is to leave this worker, or to be split, merged or removed.
	// The slice is still this worker's until Drain returns. The context ends after DrainWithin, the
	// TTL by default, and with the slice; the slice is stopped then, whether Drain has returned or
	// not.
	Drain       func(ctx context.Context, s *Slice)
	DrainWithin time.Duration

	// Stop is called last, when no check of the slice passes any more, also after a loss. The next
	// owner gets the slice when Stop has returned.
	Stop func(s *Slice)

	// StopMargin is how long before the end of validity the contexts of all slices end: a tenth of
	// the TTL by default, a third at most.
	StopMargin time.Duration

	// Strategy decides who is to own what, while this worker is the assigner. [Balance] by default.
	Strategy Strategy

	// Bystander keeps the worker from being the assigner.
	Bystander bool

	// OnError is called with what keeps the worker from its work, and is retried. It must not
	// block.
	OnError func(error)
}

// Owner is a worker that has joined a space. It is safe for concurrent use.
type Owner struct {
	m     *lease.Manager
	clk   clock.Clock
	st    store.Store // with bounded requests
	space shardmap.Space
	w     Worker
	since time.Time

	chunks []atomic.Pointer[table] // by chunk: what this worker knows of the map
	gate   gate                    // of what is reported

	carried atomic.Pointer[string] // by the last heartbeat; nil before

	ctx  context.Context // of the worker: ended by Close
	stop context.CancelCauseFunc
	done chan struct{} // closed when nothing of it runs

	mu    sync.Mutex
	term  *term
	kept  []int // chunks that the term keeps; only appended to
	leave bool
}

// Join makes this process a worker of the space: it owns slices from then on, by and by. Join
// blocks until the worker is known to the others, and retries while the store does not answer,
// until ctx is done. The error then matches ctx's cause. Join calls [Worker.OnError] when the
// reason for which it retries has changed. ctx has no effect later. The caller ends the worker by
// [Owner.Leave], or by [Owner.Close], before it closes the manager. A worker whose session was lost
// stops all slices and joins again by itself.
func Join(ctx context.Context, m *lease.Manager, space Space, w Worker) (*Owner, error) {
	if m == nil {
		return nil, errors.New("shard: manager is nil")
	}
	if err := errors.Join(space.check(), w.check(m)); err != nil {
		return nil, err
	}
	o := newOwner(m, w)
	o.ctx, o.stop = context.WithCancelCause(context.Background())
	told := ""
	for n := 0; ; n++ {
		t, err := o.enter(ctx, space)
		switch {
		case err == nil:
			go o.run(t)
			return o, nil
		case ctx.Err() != nil || final(err):
			o.stop(err)
			return nil, caused(ctx, err)
		case err.Error() != told:
			told = err.Error()
			o.report(err)
		}
		o.again(ctx, n)
	}
}

// enter makes the space if there is none, and begins the first term in it.
func (o *Owner) enter(ctx context.Context, space Space) (t *term, err error) {
	if o.space, err = space.open(ctx, o.st); err != nil {
		return nil, err
	}
	o.chunks = make([]atomic.Pointer[table], o.space.Chunks())
	if t, err = o.begin(ctx); err != nil {
		return nil, fmt.Errorf("join space %s: %w", space.Name, err)
	}
	return t, nil
}

// final tells the errors of [Owner.enter] that trying again doesn't mend.
func final(err error) bool {
	return slices.ContainsFunc([]error{
		ErrMismatch, lease.ErrClosed, shardmap.ErrFull, store.ErrClosed, store.ErrCorrupt, store.ErrInvalid, store.ErrKind,
	}, func(one error) bool { return errors.Is(err, one) })
}

// caused has an error match the cause of a context that is done, too.
func caused(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if cause == nil || errors.Is(err, cause) {
		return err
	}
	return fmt.Errorf("%w: %w", cause, err)
}

func newOwner(m *lease.Manager, w Worker) *Owner {
	return &Owner{m: m, clk: m.Clock(), st: sessions.Bounded(m), w: w, done: make(chan struct{}), since: m.Clock().Wall()}
}

func (w *Worker) check(m *lease.Manager) error {
	if w.Name == "" {
		w.Name = m.Holder()
	}
	if w.Capacity == 0 {
		w.Capacity = 1
	}
	for _, d := range []*time.Duration{&w.PrepareWithin, &w.DrainWithin} {
		if *d == 0 {
			*d = m.TTL()
		}
	}
	if w.StopMargin == 0 {
		w.StopMargin = m.TTL() / 10
	}
	if w.Strategy == nil {
		w.Strategy = Balance{}
	}
	switch {
	case w.PrepareWithin < 0 || w.DrainWithin < 0:
		return fmt.Errorf("worker: PrepareWithin %v, DrainWithin %v: want 0 or more", w.PrepareWithin, w.DrainWithin)
	case w.StopMargin < 0 || w.StopMargin > m.TTL()/3:
		return fmt.Errorf("worker: StopMargin %v: want at most a third of the TTL, %v", w.StopMargin, m.TTL()/3)
	}
	return w.sized()
}

// sized checks what others read of the worker.
func (w *Worker) sized() error {
	switch {
	case !(w.Capacity > 0) || math.IsInf(w.Capacity, 1):
		return fmt.Errorf("worker: Capacity %v: want a number above 0", w.Capacity)
	case len(w.Name) > store.MaxKey || len(w.Address) > store.MaxKey || len(w.Zone) > store.MaxKey:
		return fmt.Errorf("worker: Name, Address or Zone has over %d bytes: want a shorter one", store.MaxKey)
	}
	return nil
}

// Check returns the token under which this worker owns the slice of a key at this instant: the name
// of a slice, or any key of a hashed space. Otherwise it returns a *[WrongOwner]. Check looks at
// the clock at each call, does no I/O, takes well under a microsecond, and allocates nothing while
// the key is this worker's.
func (o *Owner) Check(key string) (fence.Token, error) {
	s, err := o.Slice(key)
	if err != nil {
		return 0, err
	}
	return s.Token, nil
}

// Slice is [Owner.Check] that returns the slice. The caller checks it again, by [Slice.Check], at
// the last moment before it acts.
func (o *Owner) Slice(key string) (*Slice, error) {
	return o.slice(key, shardmap.Hash(key))
}

// CheckHash is [Owner.Check] for a hash in a hashed space.
func (o *Owner) CheckHash(hash uint64) (fence.Token, error) {
	s, err := o.slice("", hash)
	if err != nil {
		return 0, err
	}
	return s.Token, nil
}

func (o *Owner) slice(key string, hash uint64) (*Slice, error) {
	e := o.chunks[o.space.ChunkOf(hash)].Load().find(key, hash, o.space.Hashed)
	if e == nil {
		return nil, errUnknownOwner
	}
	s := e.mine
	if s == nil || !s.serving.Load() || s.Check() != nil {
		return nil, e.wrong
	}
	return s, nil
}

// Slices returns the slices that this worker serves at this instant, in no order.
func (o *Owner) Slices() []*Slice {
	var all []*Slice
	for _, t := range o.tables() {
		for _, e := range t.entries {
			if e.mine != nil && e.mine.serving.Load() && e.mine.Check() == nil {
				all = append(all, e.mine)
			}
		}
	}
	return all
}

// tables returns what this worker knows of the chunks that concern it.
func (o *Owner) tables() (all []*table) {
	o.mu.Lock()
	kept := o.kept
	o.mu.Unlock()
	for _, i := range kept {
		if t := o.chunks[i].Load(); t != nil {
			all = append(all, t)
		}
	}
	return all
}

// Leave drains all slices, hands them over, and ends the worker. It returns when nothing of it runs
// and nothing is left. A slice that no other worker is to have within a TTL is freed: none has
// room, or its pin fits none. If ctx is done before, the slices that are left are stopped at once
// and freed for the others with the session. The error is then the cause of ctx.
func (o *Owner) Leave(ctx context.Context) error {
	o.mu.Lock()
	o.leave = true
	t := o.term
	o.mu.Unlock()
	if t != nil {
		wake(t.told)
	}
	select {
	case <-o.done:
		return nil
	case <-ctx.Done():
		o.stop(ErrLeft)
		<-o.done
		return context.Cause(ctx)
	}
}

// Close stops all slices at once and ends the worker: its slices are free for the others when Close
// returns. It blocks until nothing of the worker runs. Closing twice is no error.
func (o *Owner) Close() error {
	o.stop(ErrLeft)
	<-o.done
	return nil
}

// leaving reports whether Leave was called.
func (o *Owner) leaving() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.leave
}

// report tells the program what is retried.
func (o *Owner) report(err error) {
	if o.w.OnError != nil && err != nil && o.ctx.Err() == nil {
		o.w.OnError(err)
	}
}

// wake wakes the goroutine that waits on c, which has room for one.
func wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Manager returns the manager that the worker joined with.
func (o *Owner) Manager() *lease.Manager { return o.m }
