package drive

import (
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
)

// Driver drives one hold. It is used by one goroutine at a time, and may be copied: a copy is a
// world of its own.
type Driver struct {
	Hold protocol.Hold

	wanted bool          // Waiting: nobody has given it up
	tried  settling      // how far letting go of it for certain has come
	shown  clock.Instant // the deadline that its Term shows
}

// settling is how often it was tried to let go of a hold for certain.
type settling uint8

const (
	notYet    settling = iota
	insisting          // for as long as the session lives
	finally            // for a last TTL
)

// Want returns the driver of a hold that wants key. past is what is remembered of the name. With
// try it doesn't wait for a name that is taken.
func Want(key string, c protocol.Claim, t protocol.Timing, try bool, past Recollection) Driver {
	d := Driver{Hold: protocol.New(key, c, t, try, past.Seen, past.mine), wanted: true}
	d.Hold.RecallSession(past.session)
	return d
}

// Open returns the driver of a hold that makes a session's record; see [protocol.NewSession].
func Open(key string, c protocol.Claim, t protocol.Timing) Driver {
	return Driver{Hold: protocol.NewSession(key, c, t), wanted: true}
}

// Resume returns the driver of a term that a session keeps, so that it can be let go.
func Resume(term store.Record, c protocol.Claim, t protocol.Timing) Driver {
	return Driver{Hold: protocol.Resume(term, c, t)}
}

// Named returns the driver of a term that a holder elsewhere has, of which a server knows the owner
// and the token; see [protocol.Named]. ttl is 0 for that which the term has. A request of it that
// has no answer by attempt is sent once more, and given up after three times that.
func Named(key, owner string, token fence.Token, ttl, attempt time.Duration, past Recollection) Driver {
	t := protocol.Timing{TTL: ttl, Margin: protocol.DefaultMargin, Drift: protocol.DefaultDrift, Attempt: attempt}
	return Driver{Hold: protocol.Named(key, owner, token, t, past.Seen, past.latest)}
}

// Next returns what to do now; nothing is to be done while a request is under way. wanted says
// whether the program still waits for the name, and the session that is to keep it still lives. A
// claim that nobody wants any more is given up: what may have reached the store is to be settled
// then.
func (d *Driver) Next(env protocol.Env, wanted bool) protocol.Action {
	h := &d.Hold
	act := h.Next(env)
	switch {
	case !d.wanted:
	case h.Phase == protocol.Held:
		d.wanted = false
	case h.Phase != protocol.Waiting, act.Kind != protocol.Refuse && !wanted:
		d.wanted = false
		d.GiveUp(env)
		return protocol.Action{}
	}
	return act
}

// GiveUp lets go of a hold that nobody wants any more.
func (d *Driver) GiveUp(env protocol.Env) {
	d.Hold.Stop(env, protocol.Exit{Why: protocol.WhyGivenUp, By: env.Now.Add(d.Hold.Timing.TTL)})
}

// Show makes the deadline of a hold that keeps itself that of its term. A term that was declared
// over, because its program looked at the clock before the driver did, or let it go, stays over: no
// renewal that lands late brings it back.
func (d *Driver) Show(t *Term) {
	h := &d.Hold
	if h.Phase != protocol.Held {
		return
	}
	if t.extend(d.shown, h.Deadline) {
		d.shown = h.Deadline
		return
	}
	h.Deadline = clock.Ended
	h.Expire(protocol.Env{})
}

// Notice returns, once, what a notice on a session's record said; nil if there was none.
func (d *Driver) Notice() []byte {
	data := d.Hold.Notice
	d.Hold.Notice = nil
	return data
}

// Program is the program that has a term, and what keeps that for it.
type Program interface {
	Stop() // tells the program that its term is over, unless it has been told
	// Ends the renewals, and returns the driver, which is the caller's from then on.
	Retire() *Driver
	Env() protocol.Env
}

// Leave begins to let go of a term: the program has stopped before its renewals end, and these
// before the name is freed, so that neither acts under a term that is another's. What is left to be
// done is in the driver that it returns, beside how the world was then.
func Leave(p Program, e protocol.Exit) (*Driver, protocol.Env) {
	p.Stop()
	d := p.Retire()
	env := p.Env()
	e.By = env.Now.Add(Patience(d.Hold.Timing))
	d.Hold.Stop(env, e)
	return d, env
}

// Patience is for how long a release is waited for: a third of the TTL, or a second if that is
// longer.
func Patience(t protocol.Timing) time.Duration { return max(t.TTL/3, time.Second) }

// Settle has a hold that was let go of without that being certain tried on, and reports whether it
// is to be: in the background, by Next and [protocol.Hold.Tell] until it has ended, or until the
// session is over; and then Settle is asked again. A name that keeps itself expires if that fails.
// One that a session keeps doesn't, so that is tried for as long as the session lives, and then for
// a last TTL.
func (d *Driver) Settle(env protocol.Env, session bool) bool {
	h := &d.Hold
	kept := h.Claim.Session != ""
	switch {
	case !h.Unsettled(), d.tried == finally:
		return false
	case kept && session && d.tried == notYet:
		d.tried = insisting
		h.Insist(clock.NoDeadline)
	case kept:
		d.tried = finally
		h.Insist(env.Now.Add(h.Timing.TTL))
	default:
		d.tried = finally
	}
	return h.Phase == protocol.Leaving
}

// Insists reports whether the hold is tried to be let go for as long as its session lives.
func (d *Driver) Insists() bool { return d.tried == insisting && d.Hold.Phase == protocol.Leaving }

// AppendState appends all that decides what d does next; see [protocol.Hold.AppendState].
func (d *Driver) AppendState(b []byte, now clock.Instant, quantum time.Duration, names func([]byte, string) []byte) []byte {
	state := byte(d.tried) << 1
	if d.wanted {
		state |= 1
	}
	return d.Hold.AppendState(append(b, state), now, quantum, names)
}
