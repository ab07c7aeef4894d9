package protocol

import "github.com/leasehold/leasehold/store"

// letOthers leaves a name that may be taken to earlier waiters until this hold's patience is over.
// It reports false when there is nothing to wait for, or a write has begun.
func (h *Hold) letOthers(env Env, s Standing) (Action, bool) {
	switch version := h.rec.Rec.Version; {
	case h.Patience <= 0 || h.Try || s == Mine || s == Offered:
		return Action{}, false
	case s != Free:
		h.begin(OpVacate, Freed(h.rec.Rec, s.why(), env.Wall, env.Nonce()))
		return Action{}, false
	case h.claimAt == 0 || h.left != version:
		h.left, h.claimAt = version, env.Now.Add(h.Patience)
	}
	if env.Now >= h.claimAt {
		return Action{}, false
	}
	return Action{Kind: Wait, Key: h.Key, Version: h.left, Until: h.claimAt}, true
}

// beginClaim starts the write that takes the record as it was last seen.
func (h *Hold) beginClaim(env Env, s Standing) {
	prev := h.rec.Rec
	why := s.why()
	// Also what is offered is taken under a new token: an offer may come back with a store that was
	// restored. Tokens rise over all kinds: what was granted of the name as another kind may stand
	// in the record beside it.
	last := prev.Token
	if h.beside != nil {
		last = max(last, h.beside.Token)
	}
	nonce := env.Nonce()
	token, err := NextToken(last, env.Wall)
	if err != nil {
		h.end(err)
		return
	}
	h.begin(OpClaim, Claimed(prev, h.Claim, token, why, env.Wall, nonce))
}

func (h *Hold) begin(op Op, rec store.Record) { h.att = Attempt{Op: op, Rec: rec} }

// why says how the term ended of a record with that standing.
func (s Standing) why() string {
	switch s {
	case Mine:
		return WhyGivenUp
	case SessionGone:
		return WhySession
	}
	return WhyExpired
}

// ask returns the next request of a claim that is under way.
func (h *Hold) ask(env Env) Action { return h.Timing.claiming(h.pursue(env), env.Now) }

// pursue returns the next request of the attempt under way. When to give it up is for the caller to
// say.
func (h *Hold) pursue(env Env) Action {
	if h.att.Ask {
		return Action{Kind: Read, Key: h.Key}
	}
	if !h.att.Tied {
		h.att.Sent, h.att.Tied = env.Now, true
	}
	return Action{Kind: Write, Key: h.att.Rec.Key, Rec: h.att.Rec}
}
