package api

import (
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// The headers beside [fence.Header], which names a term wherever one is to be named.
const (
	HeaderKey   = "Idempotency-Key" // of a POST that may be sent again
	HeaderToken = "Leasehold-Token" // of the term that an answer is about
	// That came with the grant of a term or of a session, of a request in the name of its holder.
	HeaderSecret = "Leasehold-Secret"
)

// List is the answer to GET /v1/leases.
type List struct {
	Leases []Lease `json:"leases"` // in the order of their names
	// The parameter "after" of the next page, if there is one.
	Next string `json:"next,omitempty"`
}

// History is the answer to GET /v1/leases/{name}/history.
type History struct {
	Name  string `json:"name"`  // the name
	Terms []Term `json:"terms"` // the present term first, then the last 8
	// Turns are the last 8 turns of a job in which its command was begun, the last one first.
	Turns []Turn `json:"turns,omitempty"`
}

// Journal is the answer to GET /v1/history.
type Journal struct {
	Spans []Span `json:"spans"`          // those without an end first, then those that ended last
	Next  string `json:"next,omitempty"` // the parameter "after" of the next page, if there is one
	// From is from when on the journal is complete: of what ended before, it may have nothing.
	From time.Time `json:"from"`
}

// SpanKind is what a span is about.
type SpanKind string

// The kinds of spans.
const (
	SpanTerm    SpanKind = "term"
	SpanShare   SpanKind = "share"
	SpanExpired SpanKind = "expired"
	SpanBroken  SpanKind = "broken"
	SpanHanded  SpanKind = "handed over"
	SpanPaused  SpanKind = "paused"
	SpanWaiting SpanKind = "waiting"
)

// Span is what a name was for a time: a term of ownership, or a state that the server saw.
type Span struct {
	Name string   `json:"name"` // the name
	Kind SpanKind `json:"kind"` // what the span is about
	// The id of the holder; of a pause, who paused; absent where nobody is meant.
	Holder string `json:"holder,omitempty"`
	// The fencing token of the term or the share; absent where there is none.
	Token fence.Token `json:"token,omitempty"`
	// When it began: of a term by the holder's wall clock, of a pause by the pauser's, else when
	// the server saw it.
	From time.Time `json:"from"`
	// When it ended, by the wall clock of who wrote or saw that; absent while it lasts.
	Until time.Time `json:"until,omitzero"`
	Ended string    `json:"ended,omitempty"` // why it ended, if that is known
	Note  string    `json:"note,omitempty"`  // who intervened, and why
	// What the name was: rw, semaphore, election or pool; absent for a lease, or when that isn't
	// known.
	NameKind store.Kind `json:"name_kind,omitempty"`
	// The id of the session that kept the term or the share; absent if none is known.
	Session string `json:"session,omitempty"`
	// Where the holder ran, as it said itself; absent if it didn't.
	Zone string `json:"zone,omitempty"`
}

// Waiters is the answer to GET /v1/leases/{name}/waiters.
type Waiters struct {
	Name    string   `json:"name"`    // the name
	Waiters []Waiter `json:"waiters"` // who waits at this server, in order
}

// Waiter is a place in the queue of a server.
type Waiter struct {
	Holder string            `json:"holder"`         // the id under which it will hold the name
	Waited Seconds           `json:"waited"`         // how long it has waited
	Left   Seconds           `json:"left"`           // in what time it gives up
	Info   map[string]string `json:"info,omitempty"` // what it says of itself, for people
}

// Grant is the answer to POST and PUT /v1/leases/{name}: a lease, with what its holder needs.
type Grant struct {
	Lease
	// ValidFor is how long the holder may rely on the lease, counted from before it sent the
	// request that this answers, however long the answer took. A holder that has waited longer than
	// it can spare renews first. It is absent when a session keeps the lease.
	ValidFor *Seconds `json:"valid_for,omitempty"`
	// RenewEvery is how often to renew the lease. It is absent when a session keeps the lease.
	RenewEvery *Seconds `json:"renew_every,omitempty"`
	Sequencer  string   `json:"sequencer"` // what requests to the guarded resource carry
	// Secret is what proves the term to the server: the header Leasehold-Secret of each renewal,
	// and of the release. Only the answer to the POST has it.
	Secret string   `json:"secret,omitempty"`
	Waited *Seconds `json:"waited,omitempty"` // how long the request waited at the server
}

// Session is the answer to POST /v1/sessions and PUT /v1/sessions/{id}: one heartbeat for many
// leases.
type Session struct {
	Session string      `json:"session"` // the id of the session
	Holder  string      `json:"holder"`  // the id under which its leases are held
	Token   fence.Token `json:"token"`   // the token of the session itself
	// How long the session, and all that it keeps, lasts past its last renewal.
	TTL Seconds `json:"ttl"`
	// How long the holder may rely on its leases, counted from before the request was sent.
	ValidFor   Seconds `json:"valid_for"`
	RenewEvery Seconds `json:"renew_every"` // how often to renew the session
	// Broken are the leases of the session that an operator broke, with their tokens: stop what
	// they guard, and release them. Each renewal says so until that is done.
	Broken map[string]fence.Token `json:"broken,omitempty"`
	// Lost are the leases of the session whose records an outsider deleted, edited or restored:
	// stop what they guard. Each renewal says so until they are released or acquired again.
	Lost map[string]Loss `json:"lost,omitempty"`
	// LookedAt is how many leases the server looked at for that; 0 if the store was too slow.
	LookedAt *int `json:"looked_at,omitempty"`
	// Secret is what proves the session to the server: the header Leasehold-Secret of each request
	// that renews, uses or closes it. Only the answer to the POST has it.
	Secret string `json:"secret,omitempty"`
}

// Cause is why a lease of a session is over.
type Cause string

// The causes, as package lease has them.
const (
	CauseTaken  Cause = "taken"
	CauseBroken Cause = "broken"
)

// Loss says why a lease of a session is over.
type Loss struct {
	Token  fence.Token `json:"token"`  // the token of the term that is over
	Cause  Cause       `json:"cause"`  // what ended it
	Reason string      `json:"reason"` // what the record says instead
}

// Whoami is the answer to GET /v1/whoami.
type Whoami struct {
	// Whom the server takes the caller for; empty for an unknown caller.
	Caller string `json:"caller"`
	// The name that was asked about; a * behind it stands for all names that begin so.
	Name string   `json:"name"`
	May  []string `json:"may"` // the actions that the caller may take, as a policy calls them
	// For each action, the names that the caller may take it on: a name, or a prefix with a *
	// behind it. Absent if the server doesn't know them.
	Names map[string][]string `json:"names,omitempty"`
}

// Logins is the answer to GET /v1/login.
type Logins struct {
	Logins []Login `json:"logins"` // in the order of the policy; empty if it has none
}

// Login is what a browser needs to log a person in with an OpenID Connect issuer: by an
// authorization code and PKCE, as a public client.
type Login struct {
	Issuer   string `json:"issuer"`    // its URL, as its tokens have it in iss
	ClientID string `json:"client_id"` // under which the issuer knows the page
	Scopes   string `json:"scopes"`    // to ask for, with spaces between them
	// What the token is to be for, as the parameter audience, which some issuers want.
	Audience string `json:"audience,omitempty"`
	Resource string `json:"resource,omitempty"` // the same as the parameter resource (RFC 8707)
	// Which of the issuer's tokens this server takes as bearer token: id_token or access_token.
	Token string `json:"token"`
	// Where the browser goes to log in; absent while the issuer can't be asked.
	AuthorizationEndpoint string `json:"authorization_endpoint,omitempty"`
	// Where the browser exchanges codes and refresh tokens; absent while the issuer can't be asked.
	TokenEndpoint string `json:"token_endpoint,omitempty"`
	// Why nobody can log in with the issuer now; absent if people can.
	Problem string `json:"problem,omitempty"`
}

// Store is the answer to GET /v1/store: what the store behind the server promises.
type Store struct {
	Engine      string        `json:"engine"`      // the kind of store
	Consistency string        `json:"consistency"` // what its reads and writes promise
	Fencing     store.Fencing `json:"fencing"`     // how it refuses stale writers
	// What a read shows: durable, leader or local.
	Read store.ReadWorth `json:"read,omitempty"`
	// How a write of unknown outcome is settled.
	Settle store.Settling `json:"settle,omitempty"`
	// True if the store knows how old a record is.
	Age       bool   `json:"age"`
	Guarantee string `json:"guarantee"` // what holds on it, in a sentence
	// True if the server keeps a journal, so that GET /v1/history answers.
	Journal bool `json:"journal,omitempty"`
}

// Event is the data of an event "lease" of GET /v1/watch: a name has changed.
type Event struct {
	Seq   uint64 `json:"seq"`            // the number of the change
	Lease Lease  `json:"lease"`          // how the name stands now
	Gone  bool   `json:"gone,omitempty"` // true if the name has no record any more
}

// SessionEvent is the data of an event "session" of GET /v1/watch: a session that keeps names has
// been renewed, or is over. What is left of the session is what is left of each of its leases.
type SessionEvent struct {
	Seq     uint64 `json:"seq"`     // the number of the change
	Session string `json:"session"` // the id of the session, as leases name it
	// How long the session lasts past its last renewal.
	TTL Seconds `json:"ttl"`
	// How long it lasts unless it is renewed; absent when the store can't tell.
	ExpiresIn *Seconds `json:"expires_in,omitempty"`
	// True if the session is over for good, with all that it keeps.
	Gone bool `json:"gone,omitempty"`
}

// Freshness is the data of an event "beat" of GET /v1/watch: the stream lives.
type Freshness struct {
	Age   Seconds `json:"age"`             // how old what the stream has told is, at most
	Error string  `json:"error,omitempty"` // why the store couldn't be looked at
}
