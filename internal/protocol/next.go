package protocol

import (
	"fmt"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Kind is what an action asks for.
type Kind uint8

// The kinds of action.
const (
	Idle  Kind = iota // nothing, until the driver has something to tell
	Read              // read Key, then tell Read
	Write             // write Rec, then tell Wrote
	// Wait for a change of Key from Version, then tell Read; or until Until, then tell Woke.
	Wait
	Sleep  // until Until, then tell Woke
	Refuse // Try: the name is taken, until Until at the latest
	Touch  // touch Rec, as [driver.Toucher] does; no hold asks for it
)

// Action is the next thing to do.
type Action struct {
	Kind    Kind
	Key     string
	Version string
	Rec     store.Record

	// Also, of a Wait, is another key, whose change from AlsoVersion ends the wait as well; then
	// tell Read of that key. "" is none.
	Also, AlsoVersion string

	Nonce string // of a Touch

	Until clock.Instant // Read, Write and Touch: when to give the request up

	// Again, of a Read, a Write or a Touch, is when to send it once more beside the first, which is
	// still awaited: then tell [Hold.Late]. 0 is for never. To repeat a write is safe: all copies
	// carry one nonce and one version, so that at most one of them lands.
	Again clock.Instant
	Asked clock.Instant // when it was asked for, if Again isn't 0
}

// Next returns what to do now. A Write is to be sent at once: its validity counts from env.Now.
func (h *Hold) Next(env Env) Action {
	switch h.Phase {
	case Waiting:
		return h.nextWaiting(env)
	case Held:
		return h.nextHeld(env)
	case Leaving:
		return h.nextLeaving(env)
	default:
		return Action{}
	}
}

func (h *Hold) nextWaiting(env Env) Action {
	if env.Now < h.retryAt {
		return Action{Kind: Sleep, Until: h.retryAt}
	}
	if h.att.Op != OpNone {
		if h.Try && h.att.Doubt && env.Now >= h.att.Sent.Add(h.Timing.Validity()) {
			return h.drop(env)
		}
		return h.ask(env)
	}
	if !h.rec.Known {
		return h.read(env, h.Key)
	}
	if h.once && h.rec.Rec.Version != "" {
		h.end(&store.ConflictError{Current: h.rec.Rec})
		return Action{}
	}
	v := h.Verdict(env.Now)
	if act, first := h.before(env, v.Standing); first {
		return act
	}
	switch v.Standing {
	case Taken:
		return h.nextTaken(env, v.Until)
	case SessionDead:
		h.begin(OpFence, Freed(h.session.Rec, WhyExpired, env.Wall, env.Nonce()))
	default:
		if act, later := h.letOthers(env, v.Standing); later {
			return act
		}
		if h.att.Op == OpNone {
			h.beginClaim(env, v.Standing)
		}
	}
	if h.Phase != Waiting { // there is no token left
		return Action{}
	}
	return h.ask(env)
}

// ask returns the next request of a claim that is under way. A read or a write that waits for the
// name is sent once more after the time between two renewals.
func (h *Hold) ask(env Env) Action {
	return h.pursue(env, env.Now.Add(h.Timing.Answer())).Repeated(env.Now, h.Timing.Renew)
}

// read returns the read of a key, as ask would.
func (h *Hold) read(env Env, key string) Action {
	return Action{Kind: Read, Key: key, Until: env.Now.Add(h.Timing.Answer())}.Repeated(env.Now, h.Timing.Renew)
}

// nextTaken waits for a name that is held, until then at the latest.
func (h *Hold) nextTaken(env Env, until clock.Instant) Action {
	if h.Try {
		return Action{Kind: Refuse, Until: until}
	}
	if h.rec.Rec.Age == store.AgeGone {
		// Kept by a session whose end isn't known: a wait for the end of its holder would be over
		// at once, again and again.
		return Action{Kind: Sleep, Until: min(until, env.Now.Add(h.Timing.Renew))}
	}
	act := Action{Kind: Wait, Key: h.Key, Version: h.rec.Rec.Version, Until: until}
	switch {
	case h.rec.Rec.Session == "":
	case h.Follow:
		act.Also, act.AlsoVersion = h.rec.Rec.Session, h.session.Rec.Version
	default:
		// A session's renewals wake nobody who waits for one of its leases. To be looked at only
		// when it may be dead, and found renewed since, would be to notice its end up to a TTL
		// late.
		act.Until = min(until, env.Now.Add(h.Timing.Renew))
	}
	return act
}

// before returns what is to be read before s is acted on, and whether anything is, or the name is
// in use as another kind.
func (h *Hold) before(env Env, s Standing) (Action, bool) {
	key := h.stale(s)
	if key == "" {
		key = h.fit(s)
	}
	if key == "" {
		return Action{}, h.Phase != Waiting
	}
	return h.read(env, key), true
}

// letOthers leaves a name that may be taken to those who go before this hold, for as long as its
// patience lasts. It reports false when there is nothing to wait for, or a write has begun.
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

// drop gives up a claim whose outcome stayed unknown until it would be of no use. It is settled: a
// session might keep it.
func (h *Hold) drop(env Env) Action {
	err, by := h.Err, env.Now.Add(h.Timing.TTL)
	if h.Claim.Session != "" {
		by = clock.NoDeadline
	}
	h.Stop(env, Exit{Why: WhyGivenUp, By: by})
	h.Err = err
	return h.Next(env)
}

// stale returns the key that has to be read before s is acted on, or "". What time alone says of a
// record holds for the record as it was; is it still that one?
func (h *Hold) stale(s Standing) string {
	session := h.rec.Rec.Session
	switch s {
	case SessionUnknown:
		return session
	case Dead, SessionDead, Taken:
		if !h.recFresh {
			return h.Key
		}
		if session != "" && !h.sessionRead {
			return session
		}
	}
	return ""
}

// Hasten makes the next renewal of a hold that is held due at once.
func (h *Hold) Hasten(now clock.Instant) { h.renewAt = min(h.renewAt, now) }

// Due returns when a hold that was just acquired needs to be looked after: by Next, as often as
// that says from then on.
func (h *Hold) Due() clock.Instant { return min(h.renewAt, h.Deadline) }

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
	act := h.pursue(env, h.Deadline)
	// A server renews for a holder elsewhere, who doesn't wait for ever.
	if h.Deadline == clock.NoDeadline {
		act.Until = env.Now.Add(namedAttempts * h.Timing.Attempt)
	}
	return act.Repeated(env.Now, h.Timing.Attempt)
}

// Repeated has a request that is asked for now repeated after that time, if it isn't given up
// before.
func (act Action) Repeated(now clock.Instant, after time.Duration) Action {
	if t := now.Add(after); t < act.Until {
		act.Asked, act.Again = now, t
	}
	return act
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
	share, limit := h.Timing.Renew/3, h.leave.By
	if limit != clock.NoDeadline {
		// So that one request that gets no answer isn't all: there is time for three.
		share = limit.Sub(env.Now) / 4
	} else {
		limit = env.Now.Add(h.Timing.Answer())
	}
	return h.pursue(env, limit).Repeated(env.Now, max(h.Timing.Attempt, share))
}

// pursue returns the next request of the attempt under way.
func (h *Hold) pursue(env Env, limit clock.Instant) Action {
	if h.att.Ask {
		return Action{Kind: Read, Key: h.Key, Until: limit}
	}
	if !h.att.Tied {
		h.att.Sent, h.att.Tied = env.Now, true
	}
	return Action{Kind: Write, Key: h.att.Rec.Key, Rec: h.att.Rec, Until: limit}
}

func timesJitter(d time.Duration, jitter float64) time.Duration {
	return time.Duration(float64(d) * jitter)
}
