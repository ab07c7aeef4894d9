package protocol

import (
	"errors"
	"time"

	"github.com/leasehold/leasehold/clock"
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

// Tell tells what came of an action that Next asked for: of a request, of a rest, or of a wait,
// which may end without a change.
func (h *Hold) Tell(env Env, act Action, rec store.Record, err error) {
	switch {
	case act.Kind == Write:
		h.Wrote(env, rec, err)
	case act.Kind == Sleep, act.Kind == Wait && err != nil && env.Now >= act.Until:
		h.Woke() // nothing changed
	case act.Also != "" && err == nil && rec.Key == act.Also:
		h.Read(env, act.Also, rec, nil)
	default:
		h.Read(env, act.Key, rec, err)
	}
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
	case key != h.Key && key != h.rec.Rec.Session:
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

// readBeside takes note of the record beside the name's own. A store that has no room for its key
// has none.
func (h *Hold) readBeside(env Env, key string, rec store.Record, err error) {
	if err != nil && !errors.Is(err, store.ErrInvalid) {
		h.failed(env, err)
		return
	}
	h.worked()
	rec.Key = key
	h.beside = &rec
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
	spread := h.Timing.Renew / 5
	h.renewAt = sent.Add(h.Timing.Renew - spread + time.Duration(float64(spread)*env.Jitter))
}

// Expire makes a hold whose validity has ended Lost, and reports whether it did.
func (h *Hold) Expire(env Env) bool {
	if h.Phase != Held || env.Now < h.Deadline {
		return false
	}
	cause := CauseExpired
	if h.Failing {
		cause = CauseOutage
	}
	h.lose(cause)
	return true
}

func (h *Hold) worked() { h.failures, h.Failing, h.Err = 0, false, nil }

// failed counts a request that came to nothing, and puts off the next one.
func (h *Hold) failed(env Env, err error) {
	h.Err = err
	h.Failing = h.Phase == Held
	pause := h.Timing.retry(h.failures)
	h.retryAt = env.Now.Add(pause/2 + time.Duration(env.Jitter*float64(pause)))
	h.failures++
	switch {
	case h.Phase == Waiting && (fatal(err) || h.Try && !h.att.Doubt):
		h.end(err)
	case h.Phase == Leaving && fatal(err):
		h.abandon(err)
	}
}

// fatal tells the errors that trying again doesn't mend.
func fatal(err error) bool {
	return errors.Is(err, store.ErrInvalid) || errors.Is(err, store.ErrCorrupt) || errors.Is(err, store.ErrClosed)
}

func (h *Hold) lose(c Cause) { h.Phase, h.Cause = Lost, c }

func (h *Hold) end(err error) { h.Phase, h.Err = Ended, err }

// LoseSession makes a hold that a session kept Lost.
func (h *Hold) LoseSession() {
	if h.Phase == Held {
		h.lose(CauseSession)
	}
}
