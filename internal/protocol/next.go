package protocol

import (
	"slices"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/kinds"
	"github.com/leasehold/leasehold/store"
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
		return h.Timing.read(h.Key, env.Now)
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

// Verdict says how the record stands to this hold at now, by what was last seen.
func (h *Hold) Verdict(now clock.Instant) Verdict {
	return Judge(h.rec, h.session, h.Claim.Owner, h.mine, now)
}

// Standing is what a record says to one who wants the name.
type Standing uint8

// The standings.
const (
	Free           Standing = iota // nobody holds it
	Mine                           // a term of this process's own that it has given up
	Offered                        // handed over to this process
	Dead                           // abandoned: unchanged for its TTL
	SessionUnknown                 // kept by a session that has not been read yet
	SessionGone                    // kept by a session that is closed
	// Kept by a session that is abandoned, and has to be closed first.
	SessionDead
	Taken // held by somebody
)

// Verdict is a standing, and for Taken until when at the latest it stands unless a record changes.
type Verdict struct {
	Standing Standing
	Until    clock.Instant
}

// Judge says how rec stands to owner me at now. session is the observation of the record under
// rec.Session, and mine are the nonces of the versions that this process wrote in terms that it has
// given up.
func Judge(rec, session Seen, me string, mine []string, now clock.Instant) Verdict {
	r := rec.Rec
	switch {
	case r.Owner == "":
		return Verdict{Standing: Free}
	case r.Owner == me && r.Intervention == store.InterventionHandedOver:
		return Verdict{Standing: Offered}
	case r.Owner == me && slices.Contains(mine, baseNonce(r.Nonce)):
		return Verdict{Standing: Mine}
	case r.Session == "":
		return alive(rec, Dead, now)
	case !session.Known || session.Rec.Key != r.Session:
		return Verdict{Standing: SessionUnknown}
	case session.Rec.Owner != r.Owner:
		return Verdict{Standing: SessionGone}
	}
	return alive(session, SessionDead, now)
}

func alive(s Seen, dead Standing, now clock.Instant) Verdict {
	until := s.Dead()
	if now >= until {
		return Verdict{Standing: dead}
	}
	return Verdict{Standing: Taken, Until: until}
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
	return h.Timing.read(key, env.Now), true
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

// fit sees that the name may be taken as what the hold wants it as, and ends the hold if it may
// not: in use, a name stays what it is. It returns the key of a record that has to be read before
// that is known, or "".
func (h *Hold) fit(s Standing) string {
	rec, wanted := h.rec.Rec, h.Claim.Kind
	switch {
	case wanted == "":
		return ""
	case rec.Kind == "": // only the record beside it says who uses it
	case (rec.Kind.Shared() || rec.Kind == store.KindPool) && !h.recFresh:
		// What was remembered of it says nothing.
		return h.Key
	case rec.Kind.Shared():
		h.keepOut(kinds.Members(rec))
		return ""
	case rec.Kind != wanted && (rec.Kind == store.KindPool || s == Taken):
		h.end(&store.KindError{Name: h.Key, Kind: rec.Kind, Wanted: wanted, Holder: rec.Owner})
		return ""
	}
	if s == Taken || s == Mine || s == Offered {
		return ""
	}
	key := kinds.Beside(rec, wanted)
	switch {
	case key == "":
	case h.beside == nil || h.beside.Key != key:
		return key
	default:
		h.keepOut(kinds.Members(*h.beside))
	}
	return ""
}

// keepOut ends the hold if a session that uses the name as that kind may still live, or err says
// that nobody knows who uses the name.
func (h *Hold) keepOut(sessions []string, kind store.Kind, err error) {
	sessions = slices.DeleteFunc(sessions, func(session string) bool { return h.Gone[session] })
	switch {
	case err != nil:
		h.end(err)
	case len(sessions) > 0:
		h.end(&store.KindError{Name: h.Key, Kind: kind, Wanted: h.Claim.Kind, Members: sessions})
	}
}
