package store

import "slices"

// Fencing says how far the tokens of an engine can be relied on when its server fails. The higher value promises more.
type Fencing int

// The kinds of fencing, the least first.
const (
	// FencingUnknown: the engine doesn't say.
	FencingUnknown Fencing = iota
	// FencingPerPrimary: a failover may lose writes that were acknowledged. Tokens rise while one primary lives. After a
	// failover they rise as long as wall clocks are roughly right. Two holders may then both believe in their tokens until
	// the guarded resource refuses the older one.
	FencingPerPrimary
	// FencingLinearizable: no write that was acknowledged is lost by a failure that the store survives. So no token is
	// given out twice.
	FencingLinearizable
)

var fencings = []string{"", "per primary", "linearizable"}

// String returns "per primary", "linearizable", or "" for [FencingUnknown].
func (f Fencing) String() string { return name(fencings, int(f)) }

// MarshalText returns what String does.
func (f Fencing) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads what String returns. Any other text is [FencingUnknown].
func (f *Fencing) UnmarshalText(b []byte) error {
	*f = Fencing(max(slices.Index(fencings, string(b)), 0))
	return nil
}

// ReadWorth says what a Get shows. The higher value promises more.
type ReadWorth int

// The worths of a read, the least first.
const (
	// ReadUnknown: the engine doesn't say.
	ReadUnknown ReadWorth = iota
	// ReadLocal: what the server at hand has, however old. [Confirm] is durable.
	ReadLocal
	// ReadLeader: what the leader, or primary, has. A leader that was cut off shows the past until it notices, and some show a
	// write that isn't replicated yet. [Confirm] is durable.
	ReadLeader
	// ReadDurable: every write that was acknowledged before, and nothing that is lost by a failure which the store survives.
	ReadDurable
)

var readWorths = []string{"", "local", "leader", "durable"}

// String returns "local", "leader", "durable", or "" for [ReadUnknown].
func (w ReadWorth) String() string { return name(readWorths, int(w)) }

// MarshalText returns what String does.
func (w ReadWorth) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText reads what String returns. Any other text is [ReadUnknown].
func (w *ReadWorth) UnmarshalText(b []byte) error {
	*w = ReadWorth(max(slices.Index(readWorths, string(b)), 0))
	return nil
}

// Settling says how a holder learns whether a write of unknown outcome landed. To the caller both look alike: it reads the
// record, and the write landed if the record bears its nonce.
type Settling int

// The ways to settle.
const (
	// SettledUnknown: the engine doesn't say.
	SettledUnknown Settling = iota
	// SettledByRead: what a Get shows can't be lost, so the nonce in it is proof.
	SettledByRead
	// SettledByWrite: a Get may show a write that a failover takes away. So Get, Wait and a conflict return a record that shows
	// a write of this handle whose outcome is unknown only after a second write, which waits for all that the store waits
	// for. While that can't be done, they fail.
	SettledByWrite
)

var settlings = []string{"", "by a read", "by a second write"}

// String returns "by a read", "by a second write", or "" for [SettledUnknown].
func (w Settling) String() string { return name(settlings, int(w)) }

// MarshalText returns what String does.
func (w Settling) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText reads what String returns. Any other text is [SettledUnknown].
func (w *Settling) UnmarshalText(b []byte) error {
	*w = Settling(max(slices.Index(settlings, string(b)), 0))
	return nil
}

// name returns the i-th of names, "" when there is none.
func name(names []string, i int) string {
	if i < 0 || i >= len(names) {
		return ""
	}
	return names[i]
}

// Properties are what an engine promises, for code that relies on it and for people.
type Properties struct {
	Engine      string  // "etcd"
	Consistency string  // how reads and writes are made consistent, in one line
	Fencing     Fencing // how far tokens can be relied on; it changes with the server's settings, so ask again

	Read   ReadWorth // what a Get is worth
	Settle Settling  // how a write of unknown outcome is settled

	Push      bool   // its Wait is told by the server; else it polls
	Age       bool   // this handle vouches for ages
	Guarantee string // what a lease on it is worth, in one line

	// CheapRefusal: a Put that is refused, and returns the stored record, costs about as much as a Get. Then the first Acquire
	// of a name begins with a write, as if the name were new, and not with a read.
	CheapRefusal bool

	// WaitLingers: a Wait that is given up occupies the server for as long as it would have lasted. Then callers start no Wait
	// that they may give up.
	WaitLingers bool

	// CheapWait: a Wait that begins with the version that the last one returned costs the server no request, and a Wait whose
	// connection died in silence soon resumes by itself. Then a waiter follows the holder's session by a second Wait, and
	// reads the session's record less often.
	CheapWait bool

	// OverHTTP: a request is one of a net/http client, and its context is the caller's, so a [net/http/httptrace.ClientTrace]
	// in it is called. Then callers give up a request that waits for a connection when they don't need its answer any more.
	OverHTTP bool
}

// Describer is the optional interface of stores that say what they promise. Use [Describe].
type Describer interface {
	Properties() Properties
}

// Describe returns what the store promises; one that says nothing promises nothing beyond the contract.
func Describe(s Store) Properties {
	if d, ok := s.(Describer); ok {
		return d.Properties()
	}
	_, push := s.(Waiter)
	return Properties{Push: push}
}
