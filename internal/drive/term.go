package drive

import (
	"sync/atomic"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
)

// Term is what a program relies on while it holds a name. It is safe for concurrent use: the
// program looks at the clock for itself, and the first who notices that the term is over ends it.
type Term struct {
	// until is until when it is valid by itself; one of a session is valid while the session is,
	// too. It is clock.Ended once the term is over.
	until   atomic.Int64
	ended   atomic.Bool // its program was told
	session *Term       // that keeps it; nil when it keeps itself
}

// Begin begins the term of a hold that was just acquired. session is the term of the session that
// keeps it, or nil.
func (d *Driver) Begin(t, session *Term) {
	d.wanted = false // what is held is let go, not given up
	d.shown = d.Hold.Deadline
	if session != nil { // from here on only the session's validity counts
		d.shown = clock.NoDeadline
	}
	t.session = session
	t.until.Store(int64(d.shown))
}

// Until returns the deadline that counts now; [clock.Ended] when the term is over.
func (t *Term) Until() clock.Instant {
	d := t.own()
	if t.session != nil {
		d = min(d, t.session.own())
	}
	return d
}

func (t *Term) own() clock.Instant { return clock.Instant(t.until.Load()) }

func (t *Term) extend(from, to clock.Instant) bool {
	return t.until.CompareAndSwap(int64(from), int64(to))
}

// Limit bounds a term that a session keeps by a deadline of its own, which counts besides the
// session's. It reports false when the term is over.
func (t *Term) Limit(to clock.Instant) bool {
	for {
		from := t.own()
		if from == clock.Ended || t.extend(from, to) {
			return from != clock.Ended
		}
	}
}

// Limited reports whether the term has such a deadline, and returns it.
func (t *Term) Limited() (clock.Instant, bool) {
	d := t.own()
	return d, d != clock.NoDeadline && d != clock.Ended
}

// Extend moves the deadline of a term that a server renewed for its program, unless the term is
// over.
func (t *Term) Extend(to clock.Instant) bool {
	d := t.own()
	return d != clock.Ended && t.extend(d, to)
}

// Over declares the term over if it is at now, by its own deadline or by that of the session that
// keeps it, and returns the one whose deadline that is; nil if it was renewed meanwhile. The
// deadline is taken away, so that no renewal that lands late brings it back.
func (t *Term) Over(now clock.Instant) *Term {
	self := t
	if t.session != nil && now < t.own() {
		self = t.session
	}
	d := self.own()
	if now < d || !self.extend(d, clock.Ended) {
		return nil
	}
	return self
}

// End ends the term for its program, and reports whether the program is to be told: it is told
// once, whatever comes after.
func (t *Term) End() bool {
	t.until.Store(int64(clock.Ended))
	return !t.ended.Swap(true)
}

// A term that a session keeps is kept in little memory: of its record no more than so many past
// terms and bytes of data.
const (
	keptPast = 2
	keptData = 128
)

// Kept returns what is kept of the record of a term that a session keeps, so that it can be
// resumed.
func Kept(rec store.Record) store.Record {
	// A session may have very many leases, and nothing needs the rest.
	rec.Info = protocol.TraceOf(rec.Info)
	if len(rec.Past) > keptPast || len(rec.Data) > keptData {
		rec.Past, rec.Data, rec.Version = nil, nil, "" // read again by the release
	}
	return rec
}

// Copy makes to what t is, for a clone of the process; session is the clone's.
func (t *Term) Copy(to, session *Term) {
	to.until.Store(t.until.Load())
	to.ended.Store(t.ended.Load())
	to.session = session
}
