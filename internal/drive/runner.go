package drive

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Runner carries out what drivers ask for, on a store and a clock.
type Runner struct {
	Store store.Store
	Clock clock.Clock
	HTTP  bool // the store's [store.Properties] say OverHTTP
	// The owner whose work ends with this process, at the latest: see [driver.Witness]; "" for
	// none.
	Own string

	// Worth, if set, returns why a write that takes or renews a name would be worth too little now.
	// Then it isn't sent.
	Worth func() error

	// Go runs f in a goroutine that the owner of the runner waits for, and ends before the store is
	// closed; it reports false, and doesn't, when that is over. Without it no request is sent more
	// than once at a time.
	Go func(f func()) bool
}

// Request carries out a read, a write, a touch or a wait. It blocks until it is answered, its time
// is over or ctx is done. late, if it isn't nil, is called when there is no answer by the time at
// which it is sent again: in another goroutine, and before Request returns. It must not block.
func (r *Runner) Request(ctx context.Context, act protocol.Action, late func()) (store.Record, error) {
	if act.Again != 0 && act.Again < act.Until && r.Go != nil {
		return r.repeat(ctx, act, late)
	}
	ctx, cancel := clock.WithDeadline(ctx, r.Clock, act.Until)
	defer cancel()
	return r.once(ctx, act)
}

// A store that is slow is not dead. So a request that has had no answer for a while is not given
// up: it is sent once more, and the first answer counts. All copies carry one nonce and one
// version: at most one of them lands, and a conflict with its record is its success. Their validity
// counts from before the first was sent, whichever lands.

// patientCopies is how many copies are awaited until an answer is of no use any more. A third one
// is replaced again and again, so that a store which lost what it was sent is found again soon:
// with it there are three under way at most.
const patientCopies = 2

// Copies is what is known of the copies of one request. Its zero value is that of a request that
// was not sent.
type Copies struct {
	Sent     int   // so far
	underWay int   // of these
	ended    bool  // the last is not under way any more
	gaveUp   bool  // one was given up
	err      error // what came of those that are not under way
}

// Send takes note that one more copy is sent, and returns the number of that which is given up for
// it, or 0.
func (c *Copies) Send() (given int) {
	if c.Sent > patientCopies && !c.ended {
		given, c.gaveUp = c.Sent, true
		c.underWay--
	}
	c.Sent++
	c.underWay++
	c.ended = false
	return given
}

// AppendState appends all that decides what will have come of the request; see
// [protocol.Hold.AppendState].
func (c *Copies) AppendState(b []byte) []byte {
	var flags byte
	for i, f := range []bool{c.ended, c.gaveUp, c.err != nil, errors.Is(c.err, store.ErrUnknownOutcome)} {
		if f {
			flags |= 1 << i
		}
	}
	return append(b, byte(c.Sent), byte(c.underWay), flags)
}

// NextCopy returns when to send one more copy of a request of which one is sent now, beside the
// first: when twice the time has passed that the first was waited for alone.
func NextCopy(act protocol.Action, now clock.Instant) clock.Instant {
	return now.Add(2 * act.Again.Sub(act.Asked))
}

// Answered takes note of what came of the copy of that number, and reports whether that is what
// came of the request. A refusal of one copy says nothing of the others: only when all have come to
// nothing the request has, and its outcome is unknown if that of any copy is.
func (c *Copies) Answered(number int, act protocol.Action, err error) (over bool, outcome error) {
	if settles(act, err) {
		return true, err
	}
	if number > patientCopies && number < c.Sent { // it was given up, or has ended before
		return false, nil
	}
	c.ended = c.ended || number == c.Sent
	if c.err == nil || errors.Is(err, store.ErrUnknownOutcome) {
		c.err = err
	}
	if c.underWay--; c.underWay > 0 {
		return false, nil
	}
	if c.gaveUp && act.Kind != protocol.Read && !errors.Is(c.err, store.ErrUnknownOutcome) {
		c.err = driver.Unknown(act.Key, c.err)
	}
	return true, c.err
}

// settles reports whether what came of one copy is what came of the request: the version that it
// names is replaced, or gone, for ever, or a read was answered.
func settles(act protocol.Action, err error) bool {
	conflict, refused := errors.AsType[*store.ConflictError](err)
	switch {
	case err == nil:
		return true
	case refused:
		return conflict.Current.Version != act.Rec.Version
	}
	// By a write or a touch: a read is answered with an empty record then.
	return errors.Is(err, store.ErrNotFound)
}

// repeated is a request of which several copies may be under way. The first is carried out by the
// asker.
type repeated struct {
	r    *Runner
	ctx  context.Context
	act  protocol.Action
	late func()

	unsent unsent

	mu     sync.Mutex
	copies Copies
	over   bool
	first  *clock.LateDeadline // of the first copy: its timer isn't needed before that is late
	last   context.CancelFunc  // of the last one
	stop   func() bool         // of the timer
	done   chan struct{}       // closed when it is over; nil as long as there is one copy
	answer *answer             // what came of it, by another copy than the first
}

// answer is what came of a copy.
type answer struct {
	rec store.Record
	err error
}

// repeat carries out a request, and sends it again as long as there is no answer.
func (r *Runner) repeat(ctx context.Context, act protocol.Action, late func()) (store.Record, error) {
	p := &repeated{r: r, ctx: ctx, act: act, late: late}
	p.copies.Send()
	p.first = clock.WithLateDeadline(ctx, r.Clock, act.Until)
	p.mu.Lock()
	p.stop = clock.AtFrom(r.Clock, act.Asked, act.Again, p.again)
	p.mu.Unlock()
	rec, err := p.carryOut(p.first)
	if over, err := p.answered(1, err); over {
		return rec, err
	}
	<-p.done // there is another copy, or the first one would have been all
	return p.answer.rec, p.answer.err
}

// carryOut sends one copy.
func (p *repeated) carryOut(ctx context.Context) (store.Record, error) {
	if p.r.HTTP {
		var done context.CancelFunc
		ctx, done = p.unsent.watch(ctx)
		defer done()
	}
	return p.r.once(ctx, p.act)
}

// again is called when there has been no answer for a while.
func (p *repeated) again() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.copies.Sent == 1 {
		p.first.Arm()
	}
	if p.useless() {
		return
	}
	if p.late != nil && p.copies.Sent == 1 {
		p.late()
	}
	if p.r.Go(p.another) {
		p.stop = clock.At(p.r.Clock, NextCopy(p.act, p.r.Clock.Now()), p.again)
	}
}

// another carries out one more copy.
func (p *repeated) another() {
	p.mu.Lock()
	if p.useless() {
		p.mu.Unlock()
		return
	}
	if p.done == nil {
		p.done = make(chan struct{})
	}
	ctx, cancel := clock.WithDeadline(p.ctx, p.r.Clock, p.act.Until)
	defer cancel()
	if given := p.copies.Send(); given > 0 {
		p.last()
	}
	p.last = cancel
	number := p.copies.Sent
	p.mu.Unlock()
	rec, err := p.carryOut(ctx)
	if over, err := p.answered(number, err); over {
		p.answer = &answer{rec, err}
		close(p.done)
	}
}

// useless reports whether no further copy is to be sent; p.mu is held.
func (p *repeated) useless() bool {
	return p.over || p.ctx.Err() != nil || p.r.Clock.Now() >= p.act.Until
}

// answered takes note of what came of a copy, and reports whether that is what came of the request.
// Once it is, copies that are still under way are left to come to their own ends: some clients
// close the connection of a request that is cut short.
func (p *repeated) answered(number int, err error) (over bool, outcome error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return false, nil
	}
	if p.over, err = p.copies.Answered(number, p.act, err); !p.over {
		return false, nil
	}
	p.stop()
	p.first.Cancel() // who asks waits for it
	return true, err
}

// once sends a request once.
func (r *Runner) once(ctx context.Context, act protocol.Action) (store.Record, error) {
	switch act.Kind {
	case protocol.Read:
		return store.Load(ctx, r.Store, act.Key)
	case protocol.Write:
		if r.Worth != nil && act.Rec.Owner != "" {
			if err := r.Worth(); err != nil {
				return store.Record{}, err
			}
		}
		if r.Own != "" && act.Rec.Owner == r.Own {
			return driver.PutOwn(ctx, r.Store, act.Rec)
		}
		return r.Store.Put(ctx, act.Rec)
	case protocol.Touch:
		if toucher, ok := r.Store.(driver.Toucher); ok {
			return toucher.Touch(ctx, act.Rec, act.Nonce)
		}
		return store.Record{}, fmt.Errorf("touch %s: %w", act.Key, errors.ErrUnsupported)
	default:
		return Await(ctx, r.Store, act)
	}
}

// Do carries out one action of d, tells d what came of it, and returns how the world was then. It
// blocks; ctx ends it.
func (r *Runner) Do(ctx context.Context, d *Driver, session *Term, act protocol.Action) protocol.Env {
	var rec store.Record
	var err error
	switch act.Kind {
	case protocol.Idle, protocol.Refuse:
		return r.EnvIn(session)
	case protocol.Sleep:
		_ = clock.Sleep(ctx, r.Clock, act.Until.Sub(r.Clock.Now()))
	default:
		rec, err = r.Request(ctx, act, nil)
	}
	env := r.EnvIn(session)
	d.Hold.Tell(env, act, rec, err)
	return env
}

// Finish drives a hold that is being let go until it has ended; the world is as env says. It
// blocks. When ctx ends it, the outcome is unknown.
func (r *Runner) Finish(ctx context.Context, d *Driver, env protocol.Env) error {
	for {
		act := d.Next(env, true)
		if d.Hold.Phase == protocol.Ended {
			return d.Hold.Err
		}
		if ctx.Err() != nil {
			return driver.Unknown(d.Hold.Key, context.Cause(ctx))
		}
		env = r.Do(ctx, d, nil, act)
	}
}

// Carry drives a hold that Named made until it is renewed, lost, or let go, or nothing can be done
// now. It blocks.
func (r *Runner) Carry(ctx context.Context, d *Driver) error {
	h := &d.Hold
	for env := r.Env(); ; {
		act := d.Next(env, true)
		switch {
		case h.Renewed(), h.Phase == protocol.Lost:
			return nil
		case h.Phase == protocol.Ended:
			return h.Err
		case h.Err != nil && !h.InDoubt():
			return h.Err // nothing was done: who asks may ask again
		case ctx.Err() != nil && h.InDoubt():
			return driver.Unknown(h.Key, context.Cause(ctx))
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		env = r.Do(ctx, d, nil, act)
	}
}
