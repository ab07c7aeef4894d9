package api

import (
	"errors"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/identity"
)

// Kept is how a value is kept.
type Kept string

// The ways in which a value is kept.
const (
	KeptAssigned Kept = "assigned" // until its TTL is over
	KeptRunning  Kept = "running"  // by a process or a session
)

// Identity is a value of a pool that somebody has.
type Identity struct {
	Pool  string `json:"pool"`  // the name of the pool
	Value string `json:"value"` // the value
	// The value of a range; else its place in the pool, from 0 on.
	Number uint64 `json:"number"`
	// The name that has the value; absent for a value without one.
	As string `json:"as,omitempty"`
	// How the value stands, as a lease does.
	State State `json:"state"`
	// assigned: until its TTL is over; running: by a process or a session.
	Kept Kept `json:"kept"`
	// The id under which the value is held.
	Holder string      `json:"holder"`
	Token  fence.Token `json:"token"` // the fencing token of the term
	// When the term began, by the wall clock of who granted it.
	Acquired time.Time `json:"acquired"`
	// How long the value stays taken past the last request or renewal.
	TTL *Seconds `json:"ttl,omitempty"`
	// How long it stays taken at most, unless it is assigned again or renewed.
	ExpiresIn *Seconds `json:"expires_in,omitempty"`
	Session   string   `json:"session,omitempty"` // the id of the session that keeps it
	// The earliest time of ids that are made with the value.
	Floor *time.Time `json:"floor,omitempty"`
	// The latest time of ids that are made with the value.
	Ceiling *time.Time `json:"ceiling,omitempty"`
	// What the holder says of itself, for people.
	Info map[string]string `json:"info,omitempty"`
}

// Assigned is the answer to POST /v1/identities/{pool}, and what "leasehold id assign" says: an
// identity, with what its holder needs.
type Assigned struct {
	Identity
	Sequencer string `json:"sequencer"`         // what requests to the guarded resource carry
	Renewed   bool   `json:"renewed,omitempty"` // true if the name had the value before
}

// Identities is the answer to GET /v1/identities/{pool}: a pool, with its values that somebody has.
type Identities struct {
	DeclaredPool
	Identities []Identity `json:"identities"` // the values that somebody has, in order
}

// DeclaredPool is a pool, and the answer to PUT /v1/identities/{pool}. It has one of "range",
// "names", and "prefix" with "bits".
type DeclaredPool struct {
	Pool string `json:"pool"` // the name of the pool
	// What its values are: integers, both ends included, as in 1-254.
	Range  string   `json:"range,omitempty"`
	Names  []string `json:"names,omitempty"`  // or names
	Prefix string   `json:"prefix,omitempty"` // or networks out of this one, as in 10.0.0.0/16
	Bits   int      `json:"bits,omitempty"`   // how long the prefixes of these networks are
	Size   int      `json:"size"`             // how many values the pool has
	// How many of them somebody has; the answer to PUT doesn't say.
	Held   *int   `json:"held,omitempty"`
	Layout string `json:"layout,omitempty"` // the layout of the ids that are made with the values
}

// IDs is the answer to GET /v1/ids/{layout}.
type IDs struct {
	Layout string   `json:"layout"` // the layout
	Node   uint64   `json:"node"`   // the server's number in the ids
	IDs    []string `json:"ids"`    // decimal, or base 32 of those of more than 64 bits
}

// identityProblem returns the problem of what only package identity says, or nil.
func identityProblem(err error) *Problem {
	var (
		full     *identity.ExhaustedError
		mismatch *identity.MismatchError
		outside  *identity.OutsideError
		other    *identity.OtherValueError
		kept     *identity.NotAssignedError
		layout   *identity.LayoutError
		narrow   *identity.NarrowError
	)
	switch {
	case errors.As(err, &full):
		p := NewProblem(CodeExhausted, "%v", full)
		p.Name, p.ExpiresIn = full.Pool, (*Seconds)(&full.ExpiresIn)
		return p
	case errors.Is(err, identity.ErrUndeclared):
		return NewProblem(CodeUndeclared, `%v: "range", "names", or "prefix" with "bits"`, err)
	case errors.As(err, &outside):
		return Invalid("value", outside.Value, "one of "+outside.Values.String())
	case errors.As(err, &mismatch):
		p := NewProblem(CodeMismatch, "%v", mismatch)
		p.Name = mismatch.Pool
		return p
	case errors.As(err, &layout):
		p := NewProblem(CodeMismatch, "%v", layout)
		p.Name = layout.Pool
		return p
	case errors.As(err, &narrow):
		p := NewProblem(CodeMismatch, "%s: %v", narrow.Pool, narrow)
		p.Name = narrow.Pool
		return p
	case errors.As(err, &other):
		p := NewProblem(CodeMismatch, "%v", other)
		p.Name, p.Value = other.Pool, other.Value
		return p
	case errors.As(err, &kept):
		p := NewProblem(CodeHeld, "%v", kept)
		p.Name, p.Holder, p.Token = kept.Record.Key, kept.Record.Owner, kept.Record.Token
		return p
	}
	return nil
}
