package gate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
)

// Term is one term of holding a lease: a *lease.Lease is one, and an election.Term.
type Term interface {
	// Left returns for how long the term is still valid without a renewal; 0 when it has ended. It
	// looks at the clock at each call.
	Left() time.Duration

	// Context returns a context that is cancelled when the term ends.
	Context() context.Context

	// Sequencer returns what a request under the term carries.
	Sequencer() fence.Sequencer
}

// ErrExpiring is what [Gate.Open] returns when the validity of its term is about to end.
var ErrExpiring = errors.New("gate: the term is about to expire")

// Why a request is cut, as the cause of its context.
var (
	errCut    = errors.New("cut: the term under which it was forwarded is over, or about to be")
	errShort  = errors.New("not sent: too little of the term is left")
	errTwice  = errors.New("the connection broke after the write was sent, and a write is not sent twice")
	errShared = errors.New("not sent: the upstream speaks HTTP/1 now, and spoke HTTP/2 before: try again")
)

// opening is one call of Open.
type opening struct {
	term     Term
	seq      fence.Sequencer
	text     string // of seq, as it is sent
	closing  bool   // no further write is taken on
	inFlight map[*exchange]struct{}
	idle     chan struct{} // closed when closing and nothing is in flight
}

// Open passes writes under the term, until ctx is done or the term is about to end. Then it refuses
// further writes and gives running ones [Options.Drain] to finish, as far as the validity allows.
// It cuts the rest. It returns when the last write has ended, with the cause of ctx, or
// [ErrExpiring]. So a lease may be released as soon as Open has returned.
//
// It returns another error at once, without having passed any write, if the gate is open already,
// or the sequencer can't be signed.
func (g *Gate) Open(ctx context.Context, term Term) error {
	o := &opening{term: term, seq: term.Sequencer(), inFlight: map[*exchange]struct{}{}, idle: make(chan struct{})}
	o.text = o.seq.String()
	if g.opts.Keys != nil {
		var err error
		if o.text, err = g.opts.Keys.Sign(o.seq); err != nil {
			return fmt.Errorf("gate: open under %s: %w", o.seq, err)
		}
	}
	g.mu.Lock()
	if g.now != nil {
		defer g.mu.Unlock()
		return fmt.Errorf("gate: open under %s: it is open under %s", o.seq, g.now.seq)
	}
	g.now = o
	g.mu.Unlock()

	g.sleep(o, ctx.Done(), clock.NoDeadline)
	g.shut(o)
	g.sleep(o, o.idle, g.clk.Now().Add(g.opts.Drain))
	g.cutAll(o, func(*exchange) bool { return true })
	<-o.idle // cut ends them soon, whatever the client does
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now = nil
	if ctx.Err() == nil {
		return ErrExpiring
	}
	return context.Cause(ctx)
}

// sleep returns when done is closed, when the time limit is reached, and when writes have to be
// cut.
func (g *Gate) sleep(o *opening, done <-chan struct{}, limit clock.Instant) {
	for {
		now := g.clk.Now()
		left := min(o.term.Left()-g.opts.CutBefore, limit.Sub(now))
		if left <= 0 {
			return
		}
		timer := clock.NewTimer(g.clk, left)
		select {
		case <-done:
			timer.Stop()
			return
		case <-o.term.Context().Done():
			timer.Stop()
			return
		case <-timer.C: // renewed meanwhile, perhaps
		}
	}
}

// shut has no further write taken on. Upgraded connections are cut.
func (g *Gate) shut(o *opening) {
	g.mu.Lock()
	o.closing = true
	if len(o.inFlight) == 0 {
		close(o.idle)
	}
	g.mu.Unlock()
	g.cutAll(o, func(x *exchange) bool { return x.upgrade })
}

// cutAll cuts the writes in flight that which picks.
func (g *Gate) cutAll(o *opening, which func(*exchange) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for x := range o.inFlight {
		if which(x) {
			x.cut()
		}
	}
}

// enter takes a write on, or returns why it is refused.
func (g *Gate) enter(x *exchange) *refusal {
	g.mu.Lock()
	defer g.mu.Unlock()
	o := g.now
	switch {
	case o == nil:
		return g.notHolder()
	case o.closing:
		return o.refusal("closing", "this instance is letting go of %s")
	case o.term.Left() < g.opts.MinLeft:
		return g.tooLate(o)
	}
	x.o = o
	o.inFlight[x] = struct{}{}
	return nil
}

// tooLate is the refusal of a write for which the term is too short. The next renewal mends it, or
// another holder is next.
func (g *Gate) tooLate(o *opening) *refusal {
	no := o.refusal("ending", "this instance holds %s, but has not renewed it in time to forward a write")
	no.retry = time.Second
	return no
}

// refusal refuses a write although the gate is open, or was a moment ago.
func (o *opening) refusal(name, why string) *refusal {
	return &refusal{
		code: http.StatusServiceUnavailable, Error: name, Outcome: notDone,
		Name: o.seq.Name, Holder: o.seq.Holder, Token: o.seq.Token, Message: fmt.Sprintf(why, o.seq.Name),
	}
}

// leave tells that a write is no longer under way.
func (g *Gate) leave(x *exchange) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(x.o.inFlight, x)
	if x.o.closing && len(x.o.inFlight) == 0 {
		close(x.o.idle)
	}
}
