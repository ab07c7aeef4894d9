package protocol

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

// Seen is an observation: a record, and since when, on the observer's own clock, its holder is
// known to have shown no sign of life.
type Seen struct {
	Rec   store.Record
	Since clock.Instant
	Known bool
}

// Note returns the observation after a read of rec came back at now. The clock of a write starts
// when a read of it first came back, or as much earlier as the engine vouches for with the record's
// Age.
func (s Seen) Note(rec store.Record, now clock.Instant) Seen {
	since := now.Add(-rec.Age)
	if rec.Age == store.AgeGone {
		since = clock.Ended
	}
	if s.Known && sameWrite(s.Rec, rec) {
		since = min(since, s.Since)
	}
	return Seen{Rec: rec, Since: since, Known: true}
}

// sameWrite reports whether both records are what one write of their holder left. What others do
// beside it gives a record another version and is no sign of life: a label on a Kubernetes object,
// a row that is written back as it was. A record without a nonce is told from others by its
// version. A version alone says nothing: a store that was restored gives it to another write.
func sameWrite(a, b store.Record) bool {
	return a.Nonce == b.Nonce && a.Owner == b.Owner && a.Token == b.Token && a.Session == b.Session && (a.Nonce != "" || a.Version == b.Version)
}

// Dead returns the instant from which the record counts as abandoned unless it changes: the whole
// TTL, by the observer's clock, after it was first seen as it is.
func (s Seen) Dead() clock.Instant { return s.dead(clock.Resolution) }

// dead adds what the reading at which the record was first seen may have been late by.
func (s Seen) dead(resolution time.Duration) clock.Instant {
	return s.Since.Add(s.Rec.TTL).Add(resolution)
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
	if now >= s.Dead() {
		return Verdict{Standing: dead}
	}
	return Verdict{Standing: Taken, Until: s.Dead()}
}
