package protocol

import (
	"strconv"
	"strings"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// A term that is renewed in its holder's stead may be renewed by several servers in turn, who don't
// know each other's nonces. Each of these renewals counts in its nonce, so that a version which
// came back with a restored store is known by what its reader has seen of later ones. A nonce
// without a count is of a server that doesn't count yet, and says nothing.
const countSep = "~"

func countNonce(nonce string, n int) string { return nonce + countSep + strconv.Itoa(n) }

// renewals returns how often the term was renewed up to the version of that nonce.
func renewals(nonce string) (n int, counted bool) {
	_, text, found := strings.Cut(baseNonce(nonce), countSep)
	n, err := strconv.Atoi(text)
	return max(n, 0), found && err == nil
}

// A mark keeps the nonce of the version that it was put on, so that the holder, and no clone of it,
// knows it for its own.
const markSep = "+"

func baseNonce(nonce string) string {
	base, _, _ := strings.Cut(nonce, markSep)
	return base
}

func markNonce(prev, nonce string) string {
	if driver.Foreign(prev) {
		prev = "" // of a version that no holder of ours will look for
	}
	return baseNonce(prev) + markSep + nonce
}

// Latest is the newest version of a name's record that is known here, by its token and how often
// that term had been renewed.
type Latest struct {
	Token    fence.Token
	Renewals int
}

// LatestOf returns what is known from rec alone.
func LatestOf(rec store.Record) Latest {
	n, _ := renewals(rec.Nonce)
	return Latest{rec.Token, n}
}

// Note returns the newest version after rec was met.
func (l Latest) Note(rec store.Record) Latest {
	if met := LatestOf(rec); met.Token > l.Token || met.Token == l.Token && met.Renewals > l.Renewals {
		return met
	}
	return l
}

// after reports whether rec is older than the newest version that is known: it came back with a
// restored store.
func (l Latest) after(rec store.Record) bool {
	n, counted := renewals(rec.Nonce)
	return rec.Token < l.Token || rec.Token == l.Token && counted && n < l.Renewals
}

// Named returns the hold of a term of which only the owner and the token are known, as a server
// knows those of holders elsewhere. By Next it is renewed once, with another TTL if ttl isn't 0; by
// Stop it is let go. seen is what was last seen of the record: it is read if that doesn't show the
// term, and what others wrote of the term meanwhile is no loss, unless it is older than latest. A
// request is sent once more after t.Attempt, and given up after three times that.
func Named(key, owner string, token fence.Token, t Timing, seen Seen, latest Latest) Hold {
	return Hold{
		Key: key, Claim: Claim{Owner: owner, TTL: t.TTL}, Timing: t, Phase: Held, Deadline: clock.NoDeadline, renewAt: clock.Ended,
		named: true, rec: seen, latest: latest, Term: store.Record{Key: key, Owner: owner, Token: token},
	}
}

// namedAttempts is for how many attempts' time a renewal that a server makes is waited for.
const namedAttempts = 3

// Renewed reports whether a hold that [Named] returned was renewed: then it is valid until its
// Deadline.
func (h *Hold) Renewed() bool { return h.named && h.Phase == Held && h.Deadline != clock.NoDeadline }

// InDoubt reports whether a write of the attempt under way may have landed, or may land yet.
func (h *Hold) InDoubt() bool { return h.att.Doubt }

// Restored reports whether a hold that [Named] returned was lost though the record shows its term:
// it came back from a backup.
func (h *Hold) Restored() bool {
	return h.named && h.Phase == Lost && h.rec.Rec.Owner == h.Claim.Owner && h.rec.Rec.Token == h.Term.Token
}

// same reports whether cur is the term of a hold that [Named] returned, as it may be renewed, or
// let go. What came back with a restored store may be let go, if no later term is known, but not
// renewed: what its session kept need not have come back with it.
func (h *Hold) same(cur store.Record, op Op) bool {
	switch {
	case cur.Owner == "" || cur.Owner != h.Claim.Owner || cur.Token != h.Term.Token:
		return false
	case op == OpLeave:
		return cur.Token >= h.latest.Token
	}
	return !h.latest.after(cur)
}

// find takes the term of a hold that [Named] returned from what was last seen of the record, or has
// that read.
func (h *Hold) find(env Env) {
	if h.rec.Known && h.same(h.rec.Rec, OpRenew) {
		h.take(env, h.rec.Rec)
		return
	}
	h.att = Attempt{Op: OpRenew, Ask: true}
}

// take begins the renewal of the version cur in its holder's stead.
func (h *Hold) take(env Env, cur store.Record) {
	h.Term, h.Notice = cur, nil
	if h.Allow != nil {
		if err := h.Allow(cur); err != nil {
			h.end(err)
			return
		}
	}
	switch {
	case cur.Session != "":
		h.end(&store.InvalidError{Field: "Session", Value: cur.Session, Want: "a renewal of the session, which keeps this name"})
		return
	case cur.Intervention == store.InterventionBroken:
		h.lose(CauseBroken)
		return
	case cur.Intervention == store.InterventionNotice:
		// Nobody knows whether what was told before was heard.
		if h.Notice = h.Left(cur.Data); h.Notice == nil {
			h.Term.Intervention, h.Term.Note = "", ""
		}
		h.Term.Data = h.Notice
	}
	if h.Claim.TTL != 0 {
		h.Term.TTL = h.Claim.TTL
	}
	h.Timing.TTL = h.Term.TTL
	rec := h.Term
	n, _ := renewals(cur.Nonce)
	rec.Nonce = countNonce(env.Nonce(), max(n, h.latest.of(cur.Token))+1)
	h.begin(OpRenew, rec)
}

// of returns how often the term of that token is known to have been renewed.
func (l Latest) of(token fence.Token) int {
	if l.Token == token {
		return l.Renewals
	}
	return 0
}
