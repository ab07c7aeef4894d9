package api

import "github.com/leasehold/leasehold/fence"

// AcquireRequest is the body of POST /v1/leases/{name}.
type AcquireRequest struct {
	// What the holder calls itself; the answer has the id under which it holds.
	Holder string `json:"holder,omitempty"`
	// How long the hold lasts past its last renewal.
	TTL  *Seconds `json:"ttl,omitempty"`
	Wait *Seconds `json:"wait,omitempty"` // how long to wait for the name
	// The id of the session that keeps the lease, from POST /v1/sessions.
	Session string `json:"session,omitempty"`
	// What the holder says of itself, for people; a key that begins with a dot is refused.
	Info map[string]string `json:"info,omitempty"`
}

// RenewRequest is the body of PUT /v1/leases/{name}, which may be empty.
type RenewRequest struct {
	TTL *Seconds `json:"ttl,omitempty"` // another TTL from now on
}

// BreakRequest is the body of POST /v1/leases/{name}/break.
type BreakRequest struct {
	Token fence.Token `json:"token"`          // the token of the term to end: no other is touched
	Note  string      `json:"note,omitempty"` // why, for people
	// How long others leave the name to a holder that doesn't let go; the TTL by default.
	Grace *Seconds `json:"grace,omitempty"`
}

// HandoffRequest is the body of POST /v1/leases/{name}/handoff. It has "to", or "any".
type HandoffRequest struct {
	// A candidate's name, its holder's id, or the beginning of one up to a slash.
	To  string `json:"to,omitempty"`
	Any bool   `json:"any,omitempty"` // true for the next candidate, whichever it is
	// The token of the term to end: no other is touched; absent for the present leader's.
	Token  fence.Token `json:"token,omitempty"`
	Reason string      `json:"reason,omitempty"` // why, for people
	Wait   *Seconds    `json:"wait,omitempty"`   // how long to wait until another candidate leads
}

// PauseRequest is the body of POST /v1/leases/{name}/pause.
type PauseRequest struct {
	Reason string `json:"reason"` // why nobody may lead, for people
	// How long the pause lasts, 1 s to 365 days; absent: until it is resumed.
	For  *Seconds `json:"for,omitempty"`
	Wait *Seconds `json:"wait,omitempty"` // how long to wait until nobody leads
}

// ResumeRequest is the body of POST /v1/leases/{name}/resume, which may be empty where there is one
// pause.
type ResumeRequest struct {
	ID string `json:"id,omitempty"` // the id of the pause to end; "*" for all
}

// SessionRequest is the body of POST /v1/sessions.
type SessionRequest struct {
	Holder string `json:"holder,omitempty"` // what the holder calls itself
	// How long the session, and all that it keeps, lasts past its last renewal.
	TTL  *Seconds          `json:"ttl,omitempty"`
	Info map[string]string `json:"info,omitempty"` // what the holder says of itself, for people
}

// MaxNamed is how many leases one renewal of a session may name.
const MaxNamed = 1024

// SessionRenewal is the body of PUT /v1/sessions/{id}, which may be empty.
type SessionRenewal struct {
	TTL *Seconds `json:"ttl,omitempty"` // another TTL from now on
	// Leases are what the session keeps, as its holder knows it, with their tokens: the server
	// looks at these. Without them it looks at what it has granted.
	Leases map[string]fence.Token `json:"leases,omitempty"`
}

// VerifyRequest is the body of POST /v1/verify.
type VerifyRequest struct {
	Sequencer string `json:"sequencer"` // the sequencer to verify
}

// IdentityRequest is the body of POST /v1/identities/{pool}. At most one of "range", "names", and
// "prefix" with "bits" is there.
type IdentityRequest struct {
	// What the values of the pool are: integers, both ends included, as in 1-254.
	Range string   `json:"range,omitempty"`
	Names []string `json:"names,omitempty"` // or names
	// Or networks out of this one, as in 10.0.0.0/16.
	Prefix string `json:"prefix,omitempty"`
	// How long the prefixes of these networks are.
	Bits int `json:"bits,omitempty"`
	// The layout of the ids that are made with the values: a name, or a specification.
	Layout string `json:"layout,omitempty"`
	// Whose value it is: the same name is given the same value.
	As    string `json:"as,omitempty"`
	Value string `json:"value,omitempty"` // this value, and no other
	// How long the value stays taken past the last request for it.
	TTL *Seconds `json:"ttl,omitempty"`
	// How far ahead of now ids made with the value may be dated.
	Window *Seconds `json:"window,omitempty"`
	// The id of the session that keeps the value instead of the TTL.
	Session string `json:"session,omitempty"`
	// What the holder says of itself, for people.
	Info map[string]string `json:"info,omitempty"`
}

// PoolRequest is the body of PUT /v1/identities/{pool}: all values that the pool is to have. It has
// one of "range", "names", and "prefix" with "bits".
type PoolRequest struct {
	Range string   `json:"range,omitempty"` // integers, both ends included, as in 1-500
	Names []string `json:"names,omitempty"` // names
	// Networks out of this one, which begins with the one that the pool had.
	Prefix string `json:"prefix,omitempty"`
	Bits   int    `json:"bits,omitempty"` // how long the prefixes of these networks are
}
