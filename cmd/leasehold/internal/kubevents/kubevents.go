// Package kubevents writes Events of Kubernetes about the Lease of an election, as client-go's
// elector does: kubectl describe lease shows them, and kubectl get events.
//
// An Event is for people. It never delays a term: it is written by a goroutine of its own, by
// connections of its own, once. What fails is told once, and Events are dropped for a while then.
package kubevents

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/open"
)

// The bounds of what is asked of the API server.
const (
	limit    = 5 * time.Second // for one Event
	farewell = time.Second     // for what is left when the recorder is closed
	queued   = 16
	// After a failure no Event is tried for so long, twice as long after each.
	leastOff = time.Minute
	mostOff  = time.Hour
)

// note is what an Event says.
type note struct {
	name string // of the lease
	text string
	ends bool // a term that another note has begun
}

// Recorder writes Events. A nil one writes none. Its methods may be called by several goroutines.
type Recorder struct {
	write func(context.Context, note) error
	hangs func() // closes the connections
	clk   clock.Clock
	warn  func(string)
	stop  context.CancelFunc
	ended chan struct{}

	mu     sync.Mutex
	closed bool
	notes  chan note
}

// New returns a recorder for names that are kept in st, which url has opened; nil if that is no
// cluster of Kubernetes. It does no network I/O. warn is called when an Event can't be written for
// the first time, and again once one was.
func New(url open.URL, st store.Store, clk clock.Clock, warn func(string)) *Recorder {
	write, hangUp, err := dial(url, st)
	if err != nil {
		warn("no Events are written: " + err.Error())
		return nil
	}
	if write == nil {
		return nil
	}
	return start(write, hangUp, clk, warn)
}

func start(write func(context.Context, note) error, hangUp func(), clk clock.Clock, warn func(string)) *Recorder {
	ctx, stop := context.WithCancel(context.Background())
	r := &Recorder{write: write, hangs: hangUp, clk: clk, warn: warn, stop: stop, ended: make(chan struct{}), notes: make(chan note, queued)}
	go r.run(ctx)
	return r
}

// Leads notes that holder leads. It doesn't block.
func (r *Recorder) Leads(name, holder string, token fence.Token) {
	r.add(note{name: name, text: fmt.Sprintf("%s became leader (token %d)", holder, token)})
}

// Stopped notes that holder no longer leads. It doesn't block. The store may be closed by then.
func (r *Recorder) Stopped(name, holder string, token fence.Token) {
	r.add(note{name: name, text: fmt.Sprintf("%s stopped leading (token %d)", holder, token), ends: true})
}

// add drops the note if the server is slower than terms change.
func (r *Recorder) add(n note) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	select {
	case r.notes <- n:
	default:
	}
}

// Close writes what is left, for a second at most, and ends the recorder. Call it when the lease is
// given back.
func (r *Recorder) Close() {
	if r == nil {
		return
	}
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		close(r.notes)
	}
	r.mu.Unlock()
	cancel := r.clk.AfterFunc(farewell, r.stop)
	<-r.ended
	cancel()
	r.stop()
	r.hangs()
}

func (r *Recorder) run(ctx context.Context) {
	defer close(r.ended)
	var off time.Duration  // of the last failure
	var from clock.Instant // when Events are tried again
	for n := range r.notes {
		if off > 0 && r.clk.Now() < from || ctx.Err() != nil {
			continue
		}
		try, cancel := clock.WithTimeout(ctx, r.clk, limit)
		err := r.write(try, n)
		cancel()
		switch {
		case err == nil:
			off = 0
		case ctx.Err() != nil: // the farewell was too long: nobody reads a warning now
		default:
			if off == 0 {
				r.warn(fmt.Sprintf("an Event about the Lease of %s can't be written, and the next ones are left out for a while; the lease is not affected: %v", n.name, err))
			}
			off = min(max(2*off, leastOff), mostOff)
			from = r.clk.Now().Add(off)
		}
	}
}
