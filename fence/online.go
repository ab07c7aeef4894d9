package fence

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Source knows the current term of each name: a store of leases, or a lock server. It must see
// every term that began before it was asked.
type Source interface {
	Current(ctx context.Context, name string) (Holding, error)
}

// OnlineOptions of an [Online] guard.
type OnlineOptions struct {
	// MaxAge is the greatest age of an answer that admits a request. A request of an earlier term
	// is admitted for that long at most after the next term began. 0, the default, asks for every
	// request. A refusal is never late.
	MaxAge time.Duration
	// Names bounds how many names are remembered: 10,000 by default.
	Names int
}

// Online is a [Guard] that asks a [Source]. Checks of one name that come together share one
// question. It has no goroutines and needs no Close. All methods may be called from any goroutine.
//
// It asks when a request arrives. So it doesn't stop a request that is on its way into the resource
// when the next term begins. For that, the resource has to compare tokens itself, or use an
// [Offline] guard as well.
type Online struct {
	source Source
	opts   OnlineOptions
	now    func() instant

	topics sync.Map // *topic by name
	count  atomic.Int64
}

// topic is one name.
type topic struct {
	answer atomic.Pointer[answer]
	mu     sync.Mutex
	asking *question // under way
}

// answer is what the source said.
type answer struct {
	current Holding
	asked   instant // before the question was sent
}

// question is one that several checks wait for.
type question struct {
	asked instant
	done  chan struct{}
	err   error
	alone bool // err may be due to the context of the one that asked
}

// NewOnline returns a guard that asks source. It returns an error for options out of range.
func NewOnline(source Source, opts OnlineOptions) (*Online, error) {
	if source == nil {
		return nil, fmt.Errorf("online guard: source is nil")
	}
	if opts.MaxAge < 0 {
		return nil, fmt.Errorf("online guard: MaxAge %v: want 0 or more", opts.MaxAge)
	}
	if opts.Names < 0 {
		return nil, fmt.Errorf("online guard: Names %d: want 0, which means 10000, or more", opts.Names)
	}
	if opts.Names == 0 {
		opts.Names = 10_000
	}
	return &Online{source: source, opts: opts, now: now}, nil
}

// Check is [Guard.Check]. It asks unless an answer that is young enough, or a refusal that can't
// become wrong, is known.
func (o *Online) Check(ctx context.Context, s Sequencer) error {
	t := o.topic(s.Name)
	arrived := o.now()
	if a := t.answer.Load(); a != nil {
		err := a.current.Check(s)
		if err == nil && age(a.asked, arrived) < o.opts.MaxAge || err != nil && a.current.final(s) {
			return err
		}
	}
	for fresh := false; ; fresh = true {
		q, mine := t.join(o.now())
		fresh = fresh || mine
		if mine {
			o.ask(ctx, t, q, s.Name)
		} else {
			select {
			case <-q.done:
			case <-ctx.Done():
				return unsettled(s, context.Cause(ctx))
			}
		}
		// A question of others may have been sent too long before this request arrived, or have
		// failed for their reasons. One's own, and any that followed one that was waited for, was
		// sent after the arrival, whatever a clock that was set says: then its failure is as good
		// as one's own, and not everybody waits for a source that is down in turn.
		switch {
		case q.err == nil && (fresh || age(q.asked, arrived) <= o.opts.MaxAge):
			return t.answer.Load().current.Check(s)
		case mine || fresh && !q.alone:
			return unsettled(s, q.err)
		}
	}
}

func unsettled(s Sequencer, err error) error {
	return fmt.Errorf("%s: is token %d current? %w", s.Name, s.Token, err)
}

// join returns the question under way, or a new one that is the caller's to ask.
func (t *topic) join(now instant) (q *question, mine bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asking == nil {
		t.asking = &question{asked: now, done: make(chan struct{})}
		return t.asking, true
	}
	return t.asking, false
}

func (o *Online) ask(ctx context.Context, t *topic, q *question, name string) {
	current, err := Holding{}, errPanicked
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		q.err, q.alone = err, ctx.Err() != nil
		if old := t.answer.Load(); err == nil && (old == nil || current.Token >= old.current.Token) {
			t.answer.Store(&answer{current: current, asked: q.asked})
		}
		t.asking = nil
		close(q.done)
	}()
	current, err = o.source.Current(ctx, name)
}

// errPanicked is what those get who wait for a source that panics: whoever asked may survive it, as
// HTTP servers let them.
var errPanicked = errors.New("the source of the guard panicked")

// instant is a moment on both clocks. The monotonic one stands still while the machine is
// suspended, and the time of day may be set.
type instant struct{ mono, wall time.Duration }

var origin = time.Now()

func now() instant {
	t := time.Now()
	return instant{mono: t.Sub(origin), wall: time.Duration(t.UnixNano())}
}

// age is how long t is past: by the clock on which that is longer.
func age(t, now instant) time.Duration { return max(now.mono-t.mono, now.wall-t.wall) }

func (o *Online) topic(name string) *topic {
	if t, ok := o.topics.Load(name); ok {
		return t.(*topic)
	}
	t, there := o.topics.LoadOrStore(name, &topic{})
	if !there && o.count.Add(1) > int64(o.opts.Names) {
		o.topics.Clear() // what is forgotten is asked for again
		o.count.Store(0)
	}
	return t.(*topic)
}
