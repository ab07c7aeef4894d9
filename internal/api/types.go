package api

import (
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// The headers beside [fence.Header], which names a term wherever one is to be named.
const (
	HeaderKey    = "Idempotency-Key"  // of a POST that may be sent again
	HeaderToken  = "Leasehold-Token"  // of the term that an answer is about
	HeaderSecret = "Leasehold-Secret" // that came with the grant of a term or of a session, of a request in the name of its holder
)

// The states of a lease.
const (
	StateFree    = "free"
	StateHeld    = "held"
	StateExpired = "expired"     // its holder has shown no sign of life for a whole TTL, or is known to be gone: anyone may take it
	StateBroken  = "broken"      // by an operator; its holder hasn't let go yet
	StateHanded  = "handed over" // to a holder that hasn't taken it yet
	StateBad     = "unreadable"  // its record can't be read: nobody can hold it
	StatePool    = "declared"    // a pool of identities: nobody can hold its name
)

// List is the answer to GET /v1/leases.
type List struct {
	Leases []Lease `json:"leases"`         // in the order of their names
	Next   string  `json:"next,omitempty"` // the parameter "after" of the next page, if there is one
}

// History is the answer to GET /v1/leases/{name}/history.
type History struct {
	Name  string `json:"name"`
	Terms []Term `json:"terms"` // newest first
}

// Waiters is the answer to GET /v1/leases/{name}/waiters.
type Waiters struct {
	Name    string   `json:"name"`
	Waiters []Waiter `json:"waiters"` // in order
}

// AcquireRequest is the body of POST /v1/leases/{name}.
type AcquireRequest struct {
	Holder  string            `json:"holder,omitempty"`  // who asks; the answer has the id under which it holds
	TTL     *Seconds          `json:"ttl,omitempty"`     // how long the hold lasts past its last renewal
	Wait    *Seconds          `json:"wait,omitempty"`    // how long to wait for the name
	Session string            `json:"session,omitempty"` // that keeps the lease, from POST /v1/sessions
	Info    map[string]string `json:"info,omitempty"`    // for people; a key that begins with a dot is refused
}

// Lease is a name, as answers show it.
type Lease struct {
	Name      string            `json:"name"`
	State     string            `json:"state"`
	Holder    string            `json:"holder,omitempty"`
	Token     fence.Token       `json:"token"` // of the current term, or of the last
	TTL       *Seconds          `json:"ttl,omitempty"`
	Session   string            `json:"session,omitempty"`
	Acquired  *time.Time        `json:"acquired,omitempty"`   // by the wall clock of who granted it; for people
	ExpiresIn *Seconds          `json:"expires_in,omitempty"` // at most, unless it is renewed
	Silent    *Seconds          `json:"silent_for,omitempty"` // since when at least there is no sign of life, if that is more than half of the TTL
	Info      map[string]string `json:"info,omitempty"`
	Note      string            `json:"note,omitempty"`
	Waiters   int               `json:"waiters"`           // at this server
	Kind      store.Kind        `json:"kind,omitempty"`    // what the name is, if it isn't a lease
	Holders   []string          `json:"holders,omitempty"` // of a name that several share; some may have died within the last TTL
	Paused    *Pause            `json:"paused,omitempty"`
	Pauses    []Pause           `json:"pauses,omitempty"` // all, if there are several; of one name only, not in lists
	// Candidates are those who stand for election in that name, in the order in which they came. Lists and events have none.
	Candidates []Candidate `json:"candidates,omitempty"`
	// Problem says why the record, or that of the name's election, can't be read.
	Problem *Problem `json:"problem,omitempty"`
}

// Pause says that nobody may lead the election of a name.
type Pause struct {
	ID     string     `json:"id,omitempty"` // to end this one of several
	By     string     `json:"by"`
	Reason string     `json:"reason,omitempty"`
	Since  time.Time  `json:"since"`           // by the wall clock of who paused it
	Until  *time.Time `json:"until,omitempty"` // by the same: when it ends by itself; absent: it lasts until it is resumed
}

// Candidate is one that stands for election. It may have died within the last TTL.
type Candidate struct {
	Name       string    `json:"name"`
	Holder     string    `json:"holder"` // the id under which it holds the name when it leads
	Priority   int       `json:"priority,omitempty"`
	Zone       string    `json:"zone,omitempty"`
	Ineligible bool      `json:"ineligible,omitempty"`
	Since      time.Time `json:"since"` // by its wall clock; for people
}

// Grant is the answer to POST and PUT /v1/leases/{name}.
type Grant struct {
	Lease
	// ValidFor is how long the holder may rely on it, counted from before it sent the request that this answers, however long
	// the answer took. Who has waited longer than it can spare renews first. It is absent when a session keeps the lease.
	ValidFor *Seconds `json:"valid_for,omitempty"`
	// RenewEvery is how often to renew it.
	RenewEvery *Seconds `json:"renew_every,omitempty"`
	Sequencer  string   `json:"sequencer"` // what requests to the guarded resource carry
	// Secret is what proves the term to the server: HeaderSecret of each renewal, and of the release. Only the answer to the POST has it.
	Secret string   `json:"secret,omitempty"`
	Waited *Seconds `json:"waited,omitempty"` // for the name, at the server
}

// RenewRequest is the body of PUT /v1/leases/{name} and PUT /v1/sessions/{id}; it may be empty.
type RenewRequest struct {
	TTL *Seconds `json:"ttl,omitempty"` // another one from now on
}

// BreakRequest is the body of POST /v1/leases/{name}/break.
type BreakRequest struct {
	Token fence.Token `json:"token"`          // of the term to end: no other is touched
	Note  string      `json:"note,omitempty"` // why
	Grace *Seconds    `json:"grace,omitempty"`
}

// HandoffRequest is the body of POST /v1/leases/{name}/handoff. It has To or Any.
type HandoffRequest struct {
	To     string      `json:"to,omitempty"`     // a candidate's name, its holder's id, or the beginning of one up to a slash
	Any    bool        `json:"any,omitempty"`    // whoever is next
	Token  fence.Token `json:"token,omitempty"`  // of the term to end: no other is touched; absent for whoever leads
	Reason string      `json:"reason,omitempty"` // for people
	Wait   *Seconds    `json:"wait,omitempty"`   // how long to wait until another one leads
}

// PauseRequest is the body of POST /v1/leases/{name}/pause.
type PauseRequest struct {
	Reason string   `json:"reason"`         // for people: nobody may lead, and they will wonder why
	For    *Seconds `json:"for,omitempty"`  // how long it lasts; absent: until it is resumed
	Wait   *Seconds `json:"wait,omitempty"` // how long to wait until nobody leads
}

// ResumeRequest is the body of POST /v1/leases/{name}/resume, which may be empty where there is one pause.
type ResumeRequest struct {
	ID string `json:"id,omitempty"` // of the pause to end; [election.AllPauses] for all
}

// Term is one of a name's past.
type Term struct {
	Holder string      `json:"holder"`
	Token  fence.Token `json:"token"`
	From   time.Time   `json:"from"`
	Until  *time.Time  `json:"until,omitempty"` // absent: it lasts
	Ended  string      `json:"ended,omitempty"`
}

// Waiter is a place in a queue.
type Waiter struct {
	Holder string            `json:"holder"`
	Waited Seconds           `json:"waited"`
	Left   Seconds           `json:"left"` // until it gives up
	Info   map[string]string `json:"info,omitempty"`
}

// SessionRequest is the body of POST /v1/sessions.
type SessionRequest struct {
	Holder string            `json:"holder,omitempty"`
	TTL    *Seconds          `json:"ttl,omitempty"`
	Info   map[string]string `json:"info,omitempty"`
}

// Session is the answer to POST and PUT /v1/sessions.
type Session struct {
	Session    string      `json:"session"` // its id
	Holder     string      `json:"holder"`
	Token      fence.Token `json:"token"`
	TTL        Seconds     `json:"ttl"`
	ValidFor   Seconds     `json:"valid_for"`
	RenewEvery Seconds     `json:"renew_every"`
	// Broken are leases of the session that an operator broke, with their tokens: stop what they guard, and release them. Each
	// renewal says so until that is done.
	Broken map[string]fence.Token `json:"broken,omitempty"`
	// Lost are leases of the session whose records an outsider deleted, edited or restored: stop what they guard. Each renewal says so until
	// they are released or acquired again.
	Lost map[string]Loss `json:"lost,omitempty"`
	// LookedAt is how many leases were looked at for that; nil from a server that looks at none.
	LookedAt *int `json:"looked_at,omitempty"`
	// Secret is what proves the session to the server: HeaderSecret of each request that renews, uses or closes it. Only the answer to
	// the POST has it.
	Secret string `json:"secret,omitempty"`
}

// Loss says why a lease of a session is over.
type Loss struct {
	Token  fence.Token `json:"token"`
	Cause  string      `json:"cause"` // "taken" or "broken", as package lease has them
	Reason string      `json:"reason"`
}

// MaxNamed is how many leases one renewal of a session may name.
const MaxNamed = 1024

// SessionRenewal is the body of PUT /v1/sessions.
type SessionRenewal struct {
	TTL *Seconds `json:"ttl,omitempty"`
	// Leases are what the session keeps, as its holder knows it: these are looked at. Without it, it is what this server has granted.
	Leases map[string]fence.Token `json:"leases,omitempty"`
}

// VerifyRequest is the body of POST /v1/verify.
type VerifyRequest struct {
	Sequencer string `json:"sequencer"`
}

// Verdict is its answer.
type Verdict struct {
	Name    string      `json:"name"`
	Holder  string      `json:"holder"`
	Token   fence.Token `json:"token"`
	Current bool        `json:"current"`          // the term is the present one
	Now     *Lease      `json:"now,omitempty"`    // who holds the name instead
	Reason  string      `json:"reason,omitempty"` // why it isn't current
}

// Whoami is the answer to GET /v1/whoami.
type Whoami struct {
	Caller string   `json:"caller"` // "" for somebody unknown
	Name   string   `json:"name"`   // that was asked about; a * behind it stands for all names that begin so
	May    []string `json:"may"`    // the actions, as a policy calls them
}

// Store is the answer to GET /v1/store: what the store behind the server promises.
type Store struct {
	Engine      string          `json:"engine"`
	Consistency string          `json:"consistency"`
	Fencing     store.Fencing   `json:"fencing"`
	Read        store.ReadWorth `json:"read,omitempty"`
	Settle      store.Settling  `json:"settle,omitempty"`
	Age         bool            `json:"age"`
	Guarantee   string          `json:"guarantee"`
}

// Event is the data of an event "lease" of GET /v1/watch: a name has changed.
type Event struct {
	Seq   uint64 `json:"seq"`
	Lease Lease  `json:"lease"`
	Gone  bool   `json:"gone,omitempty"` // there is no such record any more
}

// SessionEvent is the data of an event "session" of GET /v1/watch: a session that keeps names has been renewed, or is over. What is
// left of it is what is left of each of them.
type SessionEvent struct {
	Seq       uint64   `json:"seq"`
	Session   string   `json:"session"` // as leases name it
	TTL       Seconds  `json:"ttl"`
	ExpiresIn *Seconds `json:"expires_in,omitempty"` // absent when the store can't tell
	Gone      bool     `json:"gone,omitempty"`       // it is over for good, and so are its holds
}

// Beat is the data of an event "beat": the stream lives.
type Beat struct {
	Age   Seconds `json:"age"`             // how old what is known is, at the most
	Error string  `json:"error,omitempty"` // why the store couldn't be looked at
}
