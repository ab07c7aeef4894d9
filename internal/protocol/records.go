package protocol

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// Why a term ended, as the record's history tells it.
const (
	WhyReleased = "released"
	WhyExpired  = "expired"
	WhyBroken   = "broken"
	WhyHanded   = "handed over"
	WhyGivenUp  = "given up"      // by an owner that took the name again
	WhySession  = "session ended" // and with it all that it kept
)

// NextToken returns the token that follows prev: the larger of prev+1 and the time in milliseconds.
// The first makes it rise; the second lifts it over a store that was wiped or restored from a
// backup.
func NextToken(prev fence.Token, wall time.Time) (fence.Token, error) {
	if prev >= fence.MaxToken {
		return 0, fmt.Errorf("token %d is the last: delete the record once nothing guarded remembers it", prev)
	}
	next := max(prev+1, fence.Token(max(wall.UnixMilli(), 0)))
	return min(next, fence.MaxToken), nil
}

// Claimed returns the record by which a claimant takes prev under token; why says how the term in
// prev, if any, ended.
func Claimed(prev store.Record, c Claim, token fence.Token, why string, wall time.Time, nonce string) store.Record {
	rec := store.Record{
		Key: prev.Key, Version: prev.Version, Kind: prev.Kind, Data: prev.Data, Past: prev.Past,
		Owner: c.Owner, Token: token, TTL: c.TTL, Session: c.Session, Info: c.Info, Acquired: wall, Nonce: nonce,
	}
	if c.Kind != "" {
		rec.Kind = c.Kind
		if prev.Kind.Shared() {
			rec.Data = nil // which listed who shared it
		}
	}
	if prev.Owner != "" && prev.Intervention != store.InterventionHandedOver {
		if prev.Intervention == store.InterventionBroken {
			why = brokenWhy(prev)
		}
		rec.Past = ended(prev, why, wall)
	}
	return rec
}

// Claim is what a claimant writes into the record that it takes.
type Claim struct {
	Owner   string
	TTL     time.Duration
	Session string
	Kind    store.Kind // what the name is wanted as; "" when that doesn't matter
	Info    map[string]string
}

// Freed returns rec without an owner. The token stays, so that the next one is higher.
func Freed(rec store.Record, why string, wall time.Time, nonce string) store.Record {
	if rec.Intervention == store.InterventionBroken {
		why = brokenWhy(rec)
	}
	free := store.Record{
		Key: rec.Key, Version: rec.Version, Token: rec.Token, Kind: rec.Kind, Data: rec.Data, Past: ended(rec, why, wall), Nonce: nonce,
		Info: TraceOf(rec.Info),
	}
	if rec.Intervention == store.InterventionHandedOver {
		free.Past = rec.Past // the successor's term never began
	}
	return free
}

// HandedOver returns rec in the name of its owner's successor, under the next token.
func HandedOver(rec store.Record, to string, ttl time.Duration, wall time.Time, nonce string) (store.Record, error) {
	token, err := NextToken(rec.Token, wall)
	if err != nil {
		return store.Record{}, err
	}
	return store.Record{
		Key: rec.Key, Version: rec.Version, Kind: rec.Kind, Data: rec.Data, Past: ended(rec, WhyHanded+" to "+to, wall),
		Owner: to, Token: token, TTL: ttl, Acquired: wall, Intervention: store.InterventionHandedOver, Note: rec.Owner, Nonce: nonce,
		Info: TraceOf(rec.Info),
	}, nil
}

// MaxTraceParent bounds the trace parent that outlives its term: programs choose it, and the record
// of a free name is kept for long.
const MaxTraceParent = 128

// TraceOf returns what of a term's info outlives the term: its trace parent, or nil.
func TraceOf(info map[string]string) map[string]string {
	parent := info[store.InfoTraceParent]
	if parent == "" || len(parent) > MaxTraceParent {
		return nil
	}
	return map[string]string{store.InfoTraceParent: parent}
}

// Broken returns rec with an operator's mark: its holder can't renew it any more, and grace is how
// long others leave it the holder that does not let go. A grace below the TTL that the holder
// counts on lets two work at once.
func Broken(rec store.Record, note string, grace time.Duration, nonce string) store.Record {
	rec.Intervention, rec.Note, rec.TTL, rec.Session = store.InterventionBroken, clip(note), grace, ""
	rec.Nonce = markNonce(rec.Nonce, nonce)
	return rec
}

// NeedsNotice reports whether the session in rec has to be told of a break of a lease that it keeps
// for owner. One that is over needn't be, nor one that was broken itself: it ends with all that it
// keeps, unless a notice takes the place of that mark.
func NeedsNotice(rec store.Record, owner string) bool {
	return rec.Owner == owner && rec.Intervention != store.InterventionBroken
}

// Noticed returns a session's record with a notice on it; data is what the session is to be told.
// See [NeedsNotice].
func Noticed(rec store.Record, note string, data []byte, nonce string) store.Record {
	rec.Intervention, rec.Note, rec.Data = store.InterventionNotice, clip(note), data
	rec.Nonce = markNonce(rec.Nonce, nonce)
	return rec
}

func brokenWhy(rec store.Record) string {
	return clip(WhyBroken + " by " + rec.Note)
}

// ended returns the past of a record whose present term ends.
func ended(rec store.Record, why string, wall time.Time) []store.Term {
	if rec.Owner == "" {
		return rec.Past
	}
	term := store.Term{Owner: rec.Owner, Token: rec.Token, From: rec.Acquired, Until: wall, Why: clip(why)}
	kept := rec.Past[:min(len(rec.Past), store.MaxPast-1)]
	return append(append(make([]store.Term, 0, len(kept)+1), term), kept...)
}

// handedOn reports whether rec remembers that the term under token ended by being handed over.
func handedOn(rec store.Record, token fence.Token) bool {
	return slices.ContainsFunc(rec.Past, func(t store.Term) bool {
		return t.Token == token && strings.HasPrefix(t.Why, WhyHanded)
	})
}

// clip shortens a text to what a record's fields take.
func clip(s string) string {
	if len(s) <= store.MaxKey {
		return s
	}
	cut := store.MaxKey
	for cut > 0 && s[cut]&0xC0 == 0x80 { // not inside a character
		cut--
	}
	return s[:cut]
}

// Stale returns the error about a token that is not the one of the current term, of the record as
// it is.
func Stale(rec store.Record, got fence.Token) error {
	return &fence.StaleError{Name: rec.Key, Got: got, Current: rec.Token, Holder: rec.Owner}
}
