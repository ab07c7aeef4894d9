package protocol

import (
	"slices"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

// Phase is where a hold stands; see the package's doc for the diagram.
type Phase uint8

// The phases.
const (
	Waiting Phase = iota
	Held
	Lost
	Leaving
	Ended
)

// Cause says why a hold was lost.
type Cause uint8

// The causes.
const (
	NotLost      Cause = iota
	CauseExpired       // validity ran out, though the store answered
	CauseTaken         // somebody else has it, or the record is gone
	CauseBroken        // an operator broke it
	CauseOutage        // validity ran out while the store did not answer
	CauseSession       // the session that kept it is over
)

// Env is what the world tells a hold whenever it is asked or told something.
type Env struct {
	Now    clock.Instant
	Wall   time.Time
	Nonce  func() string // a fresh one at each call, that no other process can have
	Jitter float64       // 0 ≤ Jitter < 1, spreads renewals and retries
	// Until when the session that keeps the hold is valid; for kept holds only.
	Session clock.Instant
}

// Hold is one attempt to own one name, from wanting it to having let go. It is a value: a copy is a
// world of its own. Whoever drives it asks [Hold.Next] what to do, does that, and tells what came
// of it; it never does two things at a time.
type Hold struct {
	Key    string
	Claim  Claim
	Timing Timing
	Try    bool // don't wait for a name that is taken
	// Whoever drives it can wait for two keys at once, so that the renewals of the session that
	// keeps the name are heard.
	Follow bool

	// Patience is how long a name that has become free is left to others, who go before this hold.
	// One that its holder has abandoned is freed first, so that they hear of it. A try has none.
	Patience time.Duration

	// Gone are keys of sessions that are known to be over, for good: whose members keep nobody from
	// using a name as another kind. It is not changed while the hold lasts.
	Gone map[string]bool

	Phase Phase
	Cause Cause
	// Why it Ended without having been held, or without having been let go; or the last failure.
	Err      error
	Term     store.Record  // the version of the record that was last known to be this hold's own
	Deadline clock.Instant // Held: until when it is valid
	Failing  bool          // Held: the last renewal failed (jeopardy)
	Notice   []byte        // Held: what a notice on the record said; the driver takes it out

	// Left, of a hold that Named returned, is given a notice, and returns what is left to be told
	// of it; nil when nothing is.
	Left func(notice []byte) []byte
	// Allow, of such a one, is asked of each version before it is renewed or let go, and ends the
	// hold by an error; it may be nil.
	Allow  func(rec store.Record) error
	LeftAt clock.Instant // before the write was sent that let go, and began the heir's term

	rec, session Seen
	// What says who uses the name as another kind; nil before it was read.
	beside                *store.Record
	att                   Attempt
	recFresh, sessionRead bool // read since it last slept
	once                  bool // take the record only if nobody ever wrote it
	// Held, Lost: the record is known not to be this hold's own any more.
	gone             bool
	named            bool     // of its term only the owner and the token are known
	mine             []string // nonces of this process's writes in terms that it has given up
	pending          string   // Leaving: nonce of a renewal that may have landed, or may yet
	failures         int      // in a row
	renewAt, retryAt clock.Instant
	left             string        // the free version that is left to others until claimAt
	claimAt          clock.Instant // 0 when none is
	latest           Latest
	leave            Exit
}

// New returns a hold that wants key. seen is what this process last saw of the record, if anything,
// and mine the nonces of its own writes in terms of this key that it has given up.
func New(key string, c Claim, t Timing, try bool, seen Seen, mine []string) Hold {
	return Hold{Key: key, Claim: c, Timing: t, Try: try, rec: seen, mine: mine}
}

// NewSession returns a hold that makes and then keeps the record of a new session, whose key nobody
// has used. It never takes a record that is there already: a session that was closed must not come
// to life again, and its leases with it.
func NewSession(key string, c Claim, t Timing) Hold {
	c.Kind = "" // its key is no name
	return Hold{Key: key, Claim: c, Timing: t, once: true, rec: Seen{Rec: store.Record{Key: key}, Known: true}, recFresh: true}
}

// Resume returns the hold of a term that a session keeps, so that it can be let go. A term without
// its Version is read again before it is written: of such a one only the Nonce is needed.
func Resume(term store.Record, c Claim, t Timing) Hold {
	return Hold{Key: term.Key, Claim: c, Timing: t, Phase: Held, Term: term, Deadline: clock.NoDeadline}
}

// SupposeNew has a hold that has seen nothing of its record begin with the write that would be
// right if there is none. If there is one, the refusal shows it: that is one request less for a new
// name, and none more for another where a refusal costs no more than a read.
func (h *Hold) SupposeNew() {
	if !h.rec.Known {
		h.rec, h.recFresh = Seen{Rec: store.Record{Key: h.Key}, Known: true}, true
	}
}

// Fresh tells a new hold that what it was given of the record has just been read or written: it
// need not be read again. It is not for one that only tries: that is refused by what the record
// says now.
func (h *Hold) Fresh() { h.recFresh = h.rec.Known && !h.Try }

// Valid reports whether the hold may be relied on at now.
func (h *Hold) Valid(now clock.Instant) bool { return h.Phase == Held && now < h.Deadline }

// Seen returns the last observation of the record, worth remembering for the next hold of the same
// key.
func (h *Hold) Seen() Seen { return h.rec }

// SeenSession returns the last observation of the record of the session that keeps the record, if
// there was one.
func (h *Hold) SeenSession() Seen { return h.session }

// RecallSession tells a new hold what this process last saw of the session that keeps the record.
func (h *Hold) RecallSession(seen Seen) { h.session = seen }

// Orphans returns the nonces under which the store may still show this hold as the owner after it
// has ended.
func (h *Hold) Orphans() []string {
	all := h.mine
	for _, nonce := range []string{h.Term.Nonce, h.pending, h.att.claimNonce()} {
		all = appended(all, nonce)
	}
	return all
}

// appended returns nonces with one more, leaving the backing array of other copies of the hold
// alone.
func appended(nonces []string, nonce string) []string {
	if nonce = baseNonce(nonce); nonce == "" || slices.Contains(nonces, nonce) {
		return nonces
	}
	return append(slices.Clip(nonces), nonce)
}

// Doing returns what the attempt under way is to bring about.
func (h *Hold) Doing() Op { return h.att.Op }
