package protocol

import (
	"fmt"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

func (h *Hold) nextHeld(env Env) Action {
	if h.named && h.att.Op == OpNone && !h.Renewed() {
		if h.find(env); h.Phase != Held {
			return Action{}
		}
	}
	switch {
	case h.Expire(env):
		return Action{}
	case h.Renewed():
		return Action{Kind: Sleep, Until: h.Deadline}
	case h.Claim.Session != "":
		return Action{Kind: Sleep, Until: h.Deadline}
	case h.att.Op == OpNone && env.Now < h.renewAt:
		return Action{Kind: Sleep, Until: h.Due()}
	case env.Now < h.retryAt:
		return Action{Kind: Sleep, Until: min(h.retryAt, h.Deadline)}
	case h.att.Op == OpNone:
		h.beginRenew(env)
	}
	act := h.pursue(env)
	act.Until = h.Deadline
	// A server renews for a holder elsewhere, who doesn't wait for ever.
	if h.Deadline == clock.NoDeadline {
		act.Until = env.Now.Add(namedAttempts * h.Timing.Attempt)
	}
	return act.Repeated(env.Now, h.Timing.Attempt)
}

// Late tells that the request that Next asked for has had no answer yet, and is sent once more. A
// hold that is held is in jeopardy from then on: the answer may come in time, or not.
func (h *Hold) Late(env Env) {
	if h.Expire(env) || h.Phase != Held {
		return
	}
	h.Failing = true
	h.Err = driver.Unknown(h.Key, fmt.Errorf("no answer within %v, asked once more and still waiting", h.Timing.Attempt))
}

// Hasten makes the next renewal of a hold that is held due at once.
func (h *Hold) Hasten(now clock.Instant) { h.renewAt = min(h.renewAt, now) }

// Due returns when a hold that was just acquired needs to be looked after: by Next, as often as
// that says from then on.
func (h *Hold) Due() clock.Instant { return min(h.renewAt, h.Deadline) }

func (h *Hold) beginRenew(env Env) {
	rec := h.Term
	rec.Nonce = env.Nonce()
	h.begin(OpRenew, rec)
}

// marked: an operator put a mark on this term's record.
func (h *Hold) marked(env Env, cur store.Record) {
	h.Term = cur
	switch {
	case h.Phase != Held:
	case cur.Intervention == store.InterventionBroken:
		h.lose(CauseBroken)
	default:
		if cur.Intervention == store.InterventionNotice {
			h.Notice = append([]byte{}, cur.Data...) // an empty one says something, too
			h.Term.Intervention, h.Term.Note, h.Term.Data = "", "", nil
		}
		h.beginRenew(env)
	}
}
