package protocol

import (
	"errors"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

func (h *Hold) nextLeaving(env Env) Action {
	switch {
	case env.Now >= h.leave.By:
		if h.Err == nil {
			h.Err = driver.Unknown(h.Key, errGaveUp)
		}
		h.abandon(h.Err)
		return Action{}
	case env.Now < h.retryAt:
		return Action{Kind: Sleep, Until: min(h.retryAt, h.leave.By)}
	}
	act, share := h.pursue(env), h.Timing.Renew/3
	if act.Until = h.leave.By; act.Until != clock.NoDeadline {
		// So that one request that gets no answer isn't all: there is time for three.
		share = act.Until.Sub(env.Now) / 4
	} else {
		act.Until = env.Now.Add(h.Timing.Answer())
	}
	return act.Repeated(env.Now, max(h.Timing.Attempt, share))
}

// Exit is how a hold is to be left.
type Exit struct {
	Why string        // for the record's history
	To  string        // the successor, or "" to free the name
	By  clock.Instant // when to give up

	// Heir, if it isn't nil, has the name next: its term begins with the write that ends this one,
	// under a token of its own.
	Heir *Claim
}

// Stop tells the hold to leave. A hold that is held has to have stopped its work before.
func (h *Hold) Stop(env Env, e Exit) {
	phase := h.Phase
	h.leave, h.Failing, h.failures, h.retryAt = e, false, 0, env.Now
	switch {
	case phase == Leaving || phase == Ended:
		return
	case phase == Waiting && h.att.Op == OpClaim && h.att.Doubt && h.rec.Rec.Version == h.att.Rec.Version:
		h.withdraw(env)
	case phase == Waiting:
		h.Phase = Ended
	case h.gone && e.To != "":
		h.end(&store.ConflictError{Current: h.rec.Rec})
	case h.gone:
		h.end(nil)
	default:
		if h.att.Op == OpRenew && h.att.Doubt {
			h.pending = h.att.Rec.Nonce
		}
		h.Phase, h.Err = Leaving, nil
		if h.named && h.rec.Known && h.same(h.rec.Rec, OpLeave) {
			h.Term = h.rec.Rec
		}
		if h.Term.Version == "" {
			h.att = Attempt{Op: OpLeave, Ask: true}
			return
		}
		h.beginLeave(env)
	}
}

// Unsettled reports whether the hold has ended, or is to end, without it being known that the
// record is not its own.
func (h *Hold) Unsettled() bool { return h.att.Op == OpLeave }

// Insist makes by the time to give up letting go, also when that time was over before.
func (h *Hold) Insist(by clock.Instant) {
	if h.Unsettled() {
		h.Phase, h.leave.By = Leaving, by
	}
}

// abandon ends a hold that could not be let go, as far as one knows.
func (h *Hold) abandon(err error) {
	if h.att.Doubt && !errors.Is(err, store.ErrUnknownOutcome) {
		err = driver.Unknown(h.Key, err)
	}
	h.end(err)
}

var errGaveUp = errors.New("the time allowed for letting go is over")

func (h *Hold) beginLeave(env Env) {
	var rec store.Record
	var err error
	if h.Allow != nil {
		if err = h.Allow(h.Term); err != nil {
			h.end(err)
			return
		}
	}
	switch {
	case h.leave.Heir != nil:
		var token fence.Token
		token, err = NextToken(h.Term.Token, env.Wall)
		rec = Claimed(h.Term, *h.leave.Heir, token, h.leave.Why, env.Wall, env.Nonce())
	case h.leave.To != "":
		rec, err = HandedOver(h.Term, h.leave.To, h.Timing.TTL, env.Wall, env.Nonce())
	default:
		rec = Freed(h.Term, h.leave.Why, env.Wall, env.Nonce())
	}
	if err != nil {
		h.end(err)
		return
	}
	h.begin(OpLeave, rec)
}

// withdraw starts the write that settles a claim which is given up while its outcome is unknown: it
// frees the record as it was to be taken. Then the claim can't land any more; or it has, and the
// conflict says so. To read the record would not settle it: the claim may land after that, and
// nobody would know of a lease that a session goes on keeping.
func (h *Hold) withdraw(env Env) {
	h.Phase, h.leave.To, h.pending = Leaving, "", h.att.Rec.Nonce
	h.begin(OpLeave, Freed(h.rec.Rec, h.leave.Why, env.Wall, env.Nonce()))
}

// overtaken: the record is another version than the one that was to be let go; ours says whether it
// is this term all the same.
func (h *Hold) overtaken(env Env, cur store.Record, ours bool) {
	switch {
	case h.leave.To != "" && handedOn(cur, h.Term.Token):
		h.end(nil) // it was handed over, and the successor has been quick
	case ours:
		h.pending, h.Term = "", cur
		h.beginLeave(env)
	case h.leave.To != "" || h.named:
		h.end(&store.ConflictError{Current: cur})
	default:
		h.end(nil)
	}
}
