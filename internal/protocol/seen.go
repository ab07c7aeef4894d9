package protocol

import (
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
