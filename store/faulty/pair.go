package faulty

import (
	"context"
	"errors"
	"sync"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/enginekit/outcome"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

// Pair is a primary, and a replica that replaces it when it dies. While they are apart, the primary
// applies a write, shows it to plain reads, and waits for the replica. If the primary dies then,
// the write is lost. All methods may be called from any goroutine.
type Pair struct {
	primary, replica *memory.DB

	mu sync.Mutex
	// Nil while the replica has all that the primary has; closed when that is so again.
	apart     chan struct{}
	failovers int
}

// NewPair returns a pair without records. The replica follows the primary.
func NewPair(c clock.Clock) *Pair {
	opts := memory.Options{Clock: c}
	return &Pair{primary: memory.NewDB(opts), replica: memory.NewDB(opts)}
}

// Detach cuts the replica off: it hears of no further write.
func (p *Pair) Detach() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.apart == nil {
		p.replica.Restore(p.primary.Snapshot())
		p.apart = make(chan struct{})
	}
}

// Attach makes the replica follow again. It gets all that it missed. Writes that wait for the
// replica are done.
func (p *Pair) Attach() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.join()
}

// FailOver makes the primary die and the replica take its place. What the replica missed is lost.
// The outcome of writes that wait for the replica stays unknown. Without a Detach before, nothing
// is lost.
func (p *Pair) FailOver() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failovers++
	if p.apart != nil {
		p.primary.Restore(p.replica.Snapshot())
	}
	p.join()
}

func (p *Pair) join() {
	if p.apart != nil {
		close(p.apart)
		p.apart = nil
	}
}

// errDied says that the primary is gone, and what it was asked with it.
var errDied = errors.New("the primary died")

// replicated returns what waits until the replica has all that the primary has by then. It is
// called before the primary is asked.
func (p *Pair) replicated() func(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.failovers
	return func(ctx context.Context) error {
		p.mu.Lock()
		apart := p.apart
		p.mu.Unlock()
		if apart != nil {
			select {
			case <-apart:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.failovers != before {
			return errDied
		}
		return nil
	}
}

// Primary returns a handle that knows of no replica. The primary alone acknowledges its writes, and
// its reads show what the primary has.
func (p *Pair) Primary() *memory.Store { return p.primary.Open() }

// Open returns a handle whose reads have that worth, and which keeps what its Properties promise. A
// write is acknowledged when the replica has it, and nothing less settles an unknown outcome.
func (p *Pair) Open(worth store.ReadWorth) *Replicated {
	return &Replicated{pair: p, worth: worth, primary: p.primary.Open(), replica: p.replica.Open()}
}

// Replicated is a handle to a [Pair]. It implements [store.Store], [store.Waiter] and
// [store.Confirmer].
type Replicated struct {
	pair             *Pair
	worth            store.ReadWorth
	primary, replica *memory.Store
	doubts           outcome.Writes
}

var (
	_ store.Store     = (*Replicated)(nil)
	_ store.Waiter    = (*Replicated)(nil)
	_ store.Confirmer = (*Replicated)(nil)
)

// Properties implements [store.Describer].
func (r *Replicated) Properties() store.Properties {
	p := r.primary.Properties()
	p.Engine, p.Consistency, p.Read = "pair", "writes wait for the replica", r.worth
	if r.worth != store.ReadDurable {
		p.Settle = store.SettledByWrite
	}
	p.Guarantee = "while the primary lives, or the replica in its place"
	return p
}
