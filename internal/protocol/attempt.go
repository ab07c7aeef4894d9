package protocol

import (
	"errors"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/kinds"
	"github.com/leasehold/leasehold/store"
)

// Op is what an attempt is to bring about.
type Op uint8

// The operations.
const (
	OpNone   Op = iota
	OpClaim     // take the name
	OpFence     // close an abandoned session, so that its holder's renewals fail
	OpVacate    // free a name that is abandoned, so that those who go before this hold hear of it
	OpRenew     // keep the name
	OpLeave     // free the name, or hand it over
)

// Attempt is one write that is to happen once. It may take several requests; all carry one nonce
// and one version, so that at most one of them lands, and it counts from before the first.
type Attempt struct {
	Op   Op
	Rec  store.Record  // what is to be written
	Sent clock.Instant // before the first request was sent
	Tied bool          // Sent is set
	// Doubt: a request of it may have landed, or may land yet. Ask: whether it did has to be read
	// before the next request.
	Doubt, Ask bool
}

// claimNonce returns the attempt's nonce if its record would show this hold as the owner.
func (a *Attempt) claimNonce() string {
	heir := a.Op == OpLeave && a.Rec.Owner != "" && a.Rec.Intervention == ""
	if a.Doubt && (a.Op == OpClaim || a.Op == OpRenew || heir) {
		return a.Rec.Nonce
	}
	return ""
}

func (h *Hold) begin(op Op, rec store.Record) { h.att = Attempt{Op: op, Rec: rec} }

// beginClaim starts the write that takes the record as it was last seen.
func (h *Hold) beginClaim(env Env, s Standing) {
	prev := h.rec.Rec
	// Also what is offered is taken under a new token: an offer may come back with a store that was
	// restored. Tokens rise over all kinds: what was granted of the name as another kind may stand
	// in the record beside it.
	last := prev.Token
	if h.beside != nil {
		last = max(last, h.beside.Token)
	}
	token, err := NextToken(last, env.Wall)
	if err != nil {
		h.end(err)
		return
	}
	h.begin(OpClaim, Claimed(prev, h.Claim, token, s.why(), env.Wall, env.Nonce()))
}

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

func (h *Hold) beginRenew(env Env) {
	rec := h.Term
	rec.Nonce = env.Nonce()
	h.begin(OpRenew, rec)
}

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

// Wrote tells the outcome of the write that Next asked for.
func (h *Hold) Wrote(env Env, rec store.Record, err error) {
	h.Expire(env) // an answer that comes too late revives nothing
	switch {
	case h.att.Op == OpFence:
		h.fenced(env, rec, err)
	case err == nil:
		h.landed(env, rec)
	default:
		h.refused(env, err)
	}
}

// refused takes note of a write that failed.
func (h *Hold) refused(env Env, err error) {
	var conflict *store.ConflictError
	switch {
	case errors.As(err, &conflict) && conflict.Current.Version != h.att.Rec.Version:
		h.met(env, conflict.Current)
	case errors.Is(err, store.ErrNotFound):
		h.met(env, store.Record{Key: h.Key})
	case errors.Is(err, store.ErrUnknownOutcome):
		h.att.Doubt, h.att.Ask = true, true
		h.failed(env, err)
	default:
		h.failed(env, err)
	}
}

// fenced takes note of the session's record after an attempt to close it. Whoever closed it, closed
// is closed; when the outcome is unknown, the session is read again.
func (h *Hold) fenced(env Env, rec store.Record, err error) {
	key := h.att.Rec.Key
	h.att = Attempt{}
	var conflict *store.ConflictError
	switch {
	case err == nil:
		h.readSession(env, rec)
	case errors.As(err, &conflict):
		h.readSession(env, conflict.Current)
	case errors.Is(err, store.ErrNotFound):
		h.readSession(env, store.Record{Key: key})
	default:
		h.sessionRead = false
		h.failed(env, err)
	}
}

// Read tells the outcome of the read of key that Next asked for, or of a wait for its change. A key
// that is not stored is Record{Key: key}, without an error.
func (h *Hold) Read(env Env, key string, rec store.Record, err error) {
	h.Expire(env)
	switch {
	case key == kinds.Beside(h.rec.Rec, h.Claim.Kind):
		h.readBeside(env, key, rec, err)
	case err != nil:
		h.failed(env, err)
	case key != h.Key:
		h.readSession(env, rec)
	default:
		h.met(env, rec)
	}
}

func (h *Hold) readSession(env Env, rec store.Record) {
	h.worked()
	h.session, h.sessionRead = h.session.Note(rec, env.Now), true
}

// Woke tells that a pause or a wait that Next asked for is over and nothing was heard. What a
// session keeps can only have changed without notice by the session's end.
func (h *Hold) Woke() {
	h.recFresh = h.recFresh && h.rec.Rec.Session != ""
	h.sessionRead = false
}

// met takes note of the record as it is, and of what that says of the attempt under way.
func (h *Hold) met(env Env, cur store.Record) {
	h.rec, h.recFresh = h.rec.Note(cur, env.Now), true
	// What ended the holder has ended its session.
	h.sessionRead = h.sessionRead && cur.Age != store.AgeGone
	switch {
	case h.att.Op == OpNone:
		h.worked()
	case cur.Nonce == h.att.Rec.Nonce && h.att.Tied:
		h.landed(env, cur)
	case cur.Version == h.att.Rec.Version && (h.att.Op != OpLeave && h.att.Op != OpRenew || cur.Version != ""):
		h.att.Ask = false // not yet: the same again
	default:
		h.superseded(env, cur)
	}
}

// superseded: the version that the attempt was to replace is gone for ever, and the attempt with
// it.
func (h *Hold) superseded(env Env, cur store.Record) {
	att := h.att
	h.att = Attempt{}
	ours := h.wrote(cur, att)
	h.worked()
	switch {
	case h.Phase == Waiting:
		h.mine = appended(h.mine, att.claimNonce())
	case att.Op == OpRenew && ours && h.named:
		h.take(env, cur)
	case att.Op == OpRenew && ours && cur.Intervention != "":
		h.marked(env, cur)
	case att.Op == OpRenew:
		h.gone = true
		if h.Phase == Held {
			h.lose(CauseTaken)
		}
	case att.Op == OpLeave:
		h.overtaken(env, cur, ours)
	default:
		h.end(nil)
	}
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

// wrote reports whether cur is still this term: a renewal that landed after all, or a mark that was
// put on a version of one's own. A mark names the version it was put on by its nonce. A version of
// one's own that came back with a restored store is this term, too: it may be let go, but not
// renewed, since what a session keeps need not have come back with it.
func (h *Hold) wrote(cur store.Record, att Attempt) bool {
	if h.named {
		return h.same(cur, att.Op)
	}
	base := baseNonce(cur.Nonce)
	if base == "" {
		return false // a record that is gone, or that nobody of ours wrote
	}
	return base == baseNonce(h.Term.Nonce) || base == h.pending || (att.Tied && base == att.Rec.Nonce)
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

// landed: rec is the record as the attempt wrote it.
func (h *Hold) landed(env Env, rec store.Record) {
	att := h.att
	h.att = Attempt{}
	h.worked()
	h.rec, h.recFresh = h.rec.Note(rec, env.Now), true
	switch {
	case att.Op == OpLeave:
		h.pending = ""
		h.LeftAt = att.Sent
		h.Term = store.Record{Token: rec.Token}
		h.end(nil)
	case att.Op == OpClaim:
		h.claimed(env, rec, att.Sent)
	case att.Op == OpVacate: // it is free now, for others at first
	default:
		h.Term = rec
		if h.Phase == Held {
			h.extend(env, att.Sent)
		}
	}
}

// claimed: the name is ours if there is time left on it. A claim that took too long is a term given
// up at once, to be taken again under a new token.
func (h *Hold) claimed(env Env, rec store.Record, sent clock.Instant) {
	h.Term = rec
	if h.Claim.Session != "" {
		// The session may have ended, and been closed by another, while the claim was on its way.
		h.Phase, h.Deadline = Held, env.Session
		if env.Now >= env.Session {
			h.lose(CauseSession)
		}
		return
	}
	h.extend(env, sent)
	if env.Now >= h.Deadline {
		h.mine = appended(h.mine, rec.Nonce)
		return
	}
	h.Phase = Held
}

func (h *Hold) extend(env Env, sent clock.Instant) {
	h.Deadline = sent.Add(h.Timing.Validity())
	// Between 80 % and 100 % of the interval, so that what started together doesn't stay together.
	h.renewAt = sent.Add(h.Timing.Renew - h.Timing.Renew/5).Add(timesJitter(h.Timing.Renew/5, env.Jitter))
}
