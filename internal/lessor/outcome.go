package lessor

import (
	"errors"
	"fmt"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// over takes note of a hold that has come to something, and reports whether it has.
func (n *name) over() bool {
	if n.d == nil {
		return true
	}
	switch h := &n.d.Hold; h.Phase {
	case protocol.Held:
		n.past.Granted(h.Term)
		if n.settle(n.claimant, answer{grant: Grant{Record: h.Term, ValidUntil: h.Deadline}}) {
			n.forget()
			return true
		}
		n.withdraw()
		return n.d == nil
	case protocol.Ended:
		n.past.Orphan(h)
		// The holder elsewhere has gone: nobody else lets go of what its session would keep.
		if n.d.Settle(n.env(), true) {
			return false
		}
		if h.Err != nil && !n.withdrawn && !n.vacated(h.Err) {
			n.settle(n.claimant, answer{err: h.Err})
		}
		n.forget()
		return true
	}
	return false
}

func (n *name) forget() { n.d, n.claimant, n.withdrawn = nil, nil, false }

// withdraw lets a hold go that nobody wants any more.
func (n *name) withdraw() {
	n.withdrawn = true
	n.d.GiveUp(n.env())
	n.over()
}

// vacated reports whether err says that the name is in use as another kind, of which all members'
// sessions are over: then the next hold takes it.
func (n *name) vacated(err error) bool {
	other, ok := errors.AsType[*store.KindError](err)
	if !ok || len(other.Members) == 0 {
		return false
	}
	ctx, cancel := clock.WithTimeout(n.r.ctx, n.r.clk, patience)
	defer cancel()
	gone, err := n.r.watch.Gone(ctx, other.Members)
	if err != nil || gone == nil {
		return false
	}
	n.gone = gone
	return true
}

// missed is the error of a request that has to go without the name.
func (n *name) missed() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.trouble != nil || n.past.Seen.Rec.Owner == "" {
		return fmt.Errorf("%s: %w", n.key, errors.Join(errNoAnswer, n.trouble))
	}
	return n.heldBy()
}

func (n *name) heldBy() error {
	rec := n.past.Seen.Rec
	return &lease.HeldError{
		Name: n.key, Holder: rec.Owner, Since: rec.Acquired, Token: rec.Token, Note: rec.Note,
		ExpiresIn: max(n.past.Seen.Dead().Sub(n.r.clk.Now()), 0),
	}
}

var errNoAnswer = errors.New("the store has not answered in time")
