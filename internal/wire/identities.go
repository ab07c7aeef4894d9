package wire

import (
	"errors"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/identity"
)

// IdentityRequest is the body of POST /v1/identities/{pool}. At most one of range, names, and prefix with bits is there.
type IdentityRequest struct {
	Range   string            `json:"range,omitempty"`   // what the values of the pool are: integers, "1-254";
	Names   []string          `json:"names,omitempty"`   // or names;
	Prefix  string            `json:"prefix,omitempty"`  // or networks out of this one,
	Bits    int               `json:"bits,omitempty"`    // with prefixes so long
	Layout  string            `json:"layout,omitempty"`  // of the ids that are made with the values: a name, or a specification
	As      string            `json:"as,omitempty"`      // whose value it is: the same name is given the same value
	Value   string            `json:"value,omitempty"`   // this one, and no other
	TTL     *Seconds          `json:"ttl,omitempty"`     // how long it stays taken past the last request for it
	Window  *Seconds          `json:"window,omitempty"`  // how far ahead of now ids made with it may be dated
	Session string            `json:"session,omitempty"` // that keeps it instead of the TTL, from POST /v1/sessions
	Info    map[string]string `json:"info,omitempty"`    // for people
}

// The ways in which an identity is kept.
const (
	KeptAssigned = "assigned" // until its TTL is over
	KeptRunning  = "running"  // by a process or a session
)

// Identity is a value of a pool that somebody has.
type Identity struct {
	Pool      string            `json:"pool"`
	Value     string            `json:"value"`
	Number    uint64            `json:"number"` // the value of a range; else its place in the pool, from 0 on
	As        string            `json:"as,omitempty"`
	Kept      string            `json:"kept"`
	Holder    string            `json:"holder"`
	Token     fence.Token       `json:"token"`
	Acquired  time.Time         `json:"acquired"` // by the wall clock of who granted it; for people
	TTL       *Seconds          `json:"ttl,omitempty"`
	ExpiresIn *Seconds          `json:"expires_in,omitempty"`
	Session   string            `json:"session,omitempty"`
	Floor     *time.Time        `json:"floor,omitempty"`   // ids made with it have times from here on,
	Ceiling   *time.Time        `json:"ceiling,omitempty"` // up to here, and no others
	Info      map[string]string `json:"info,omitempty"`
}

// Assigned is the answer to POST /v1/identities/{pool}.
type Assigned struct {
	Identity
	Sequencer string `json:"sequencer"`         // what requests to the guarded resource carry
	Renewed   bool   `json:"renewed,omitempty"` // the name had it before
}

// Identities is the answer to GET /v1/identities/{pool}.
type Identities struct {
	DeclaredPool
	Identities []Identity `json:"identities"` // those that somebody has
}

// PoolRequest is the body of PUT /v1/identities/{pool}: all values that the pool is to have. One of range, names, and prefix with bits is there.
type PoolRequest struct {
	Range  string   `json:"range,omitempty"`
	Names  []string `json:"names,omitempty"`
	Prefix string   `json:"prefix,omitempty"`
	Bits   int      `json:"bits,omitempty"`
}

// DeclaredPool is a pool, and the answer to PUT /v1/identities/{pool}.
type DeclaredPool struct {
	Pool   string   `json:"pool"`
	Range  string   `json:"range,omitempty"` // what its values are
	Names  []string `json:"names,omitempty"`
	Prefix string   `json:"prefix,omitempty"`
	Bits   int      `json:"bits,omitempty"`
	Size   int      `json:"size"`
	Layout string   `json:"layout,omitempty"` // of the ids that are made with them
}

// IDs is the answer to GET /v1/ids/{layout}.
type IDs struct {
	Layout string   `json:"layout"`
	Node   uint64   `json:"node"` // the server's number in them
	IDs    []string `json:"ids"`  // decimal, or base 32 of those of more than 64 bits
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
