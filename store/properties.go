package store

import "slices"

// Fencing is how far the tokens of an engine can be relied on when its server fails. The higher
// value promises more.
type Fencing int

// The kinds of fencing, the least first.
const (
	// FencingUnknown means that the engine doesn't say.
	FencingUnknown Fencing = iota
	// FencingPerPrimary means that a failover may lose writes that were acknowledged. Tokens rise
	// while one primary lives. After a failover they rise as long as wall clocks are roughly right.
	// Two holders may then both believe in their tokens until the guarded resource refuses the
	// stale one.
	FencingPerPrimary
	// FencingLinearizable means that no failure that the store survives loses an acknowledged
	// write. So no token is given out twice.
	FencingLinearizable
)

var fencings = []string{"", "per primary", "linearizable"}

// String returns "per primary", "linearizable", or "" for [FencingUnknown].
func (f Fencing) String() string { return name(fencings, int(f)) }

// MarshalText returns what String does, as bytes. It returns no error.
func (f Fencing) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads what String returns. Any other text is [FencingUnknown]. It returns no error.
func (f *Fencing) UnmarshalText(b []byte) error {
	*f = Fencing(max(slices.Index(fencings, string(b)), 0))
	return nil
}

// ReadWorth is what a Get shows. The higher value promises more.
type ReadWorth int

// The worths of a read, the least first.
const (
	// ReadUnknown means that the engine doesn't say.
	ReadUnknown ReadWorth = iota
	// ReadLocal means that a Get shows what the server at hand has, however old. [Confirm] is
	// durable.
	ReadLocal
	// ReadLeader means that a Get shows what the leader, or primary, has. A leader that was cut off
	// shows the past until it notices. Some leaders show a write that isn't replicated yet.
	// [Confirm] is durable.
	ReadLeader
	// ReadDurable means that a Get shows every write that was acknowledged before. It shows nothing
	// that is lost by a failure which the store survives. Nor does a Wait or a conflict, but these
	// may be late.
	ReadDurable
)

var readWorths = []string{"", "local", "leader", "durable"}

// String returns "local", "leader", "durable", or "" for [ReadUnknown].
func (w ReadWorth) String() string { return name(readWorths, int(w)) }

// MarshalText returns what String does, as bytes. It returns no error.
func (w ReadWorth) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText reads what String returns. Any other text is [ReadUnknown]. It returns no error.
func (w *ReadWorth) UnmarshalText(b []byte) error {
	*w = ReadWorth(max(slices.Index(readWorths, string(b)), 0))
	return nil
}

// Settling is how a holder learns whether a write of unknown outcome landed. To the caller all ways
// look alike. The caller reads the record, and the write landed if the record bears its nonce.
type Settling int

// The ways to settle.
const (
	// SettledUnknown means that the engine doesn't say.
	SettledUnknown Settling = iota
	// SettledByRead means that what a Get shows can't be lost, so the nonce in it is proof.
	SettledByRead
	// SettledByWrite means that a Get may show a write that a failover takes away. A record may
	// show a write of this handle whose outcome is unknown. Get, Wait and a conflict return such a
	// record only after a second write, which waits for all that the store waits for. While that
	// second write can't be done, they fail.
	SettledByWrite
)

var settlings = []string{"", "by a read", "by a second write"}

// String returns "by a read", "by a second write", or "" for [SettledUnknown].
func (w Settling) String() string { return name(settlings, int(w)) }

// MarshalText returns what String does, as bytes. It returns no error.
func (w Settling) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText reads what String returns. Any other text is [SettledUnknown]. It returns no error.
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

// Properties are what an engine promises, for code that relies on the promise and for people.
type Properties struct {
	Engine      string // "etcd"
	Consistency string // how reads and writes are made consistent, in one line

	// Fencing is how far tokens can be relied on. It changes with the server's settings, so ask
	// again.
	Fencing Fencing

	Read   ReadWorth // what a Get is worth
	Settle Settling  // how a write of unknown outcome is settled

	Push      bool   // the server pushes changes to its Wait; else Wait polls
	Age       bool   // this handle vouches for ages
	Guarantee string // what a lease on it is worth, in one line

	// CheapRefusal means that a Put that is refused, and returns the stored record, costs about as
	// much as a Get. Then the first Acquire of a name begins with a write, as if the name were new,
	// and not with a read.
	CheapRefusal bool

	// WaitLingers means that a Wait that is given up occupies the server until that Wait would have
	// ended. Then callers start no Wait that they may give up.
	WaitLingers bool

	// CheapWait means two things. A Wait that begins with the version that the last Wait returned
	// costs the server no request. A Wait whose connection died in silence soon resumes by itself.
	// Then a waiter follows the holder's session by a second Wait, and reads the session's record
	// less often.
	CheapWait bool

	// OverHTTP means that a request is sent by a net/http client. The request's context is the
	// caller's, so a [net/http/httptrace.ClientTrace] in it is called. Then callers give up a
	// request that waits for a connection when they don't need its answer any more.
	OverHTTP bool
}

// Describer is the optional interface of stores that say what they promise. Use [Describe].
type Describer interface {
	Properties() Properties
}

// Describe returns what the store promises. A store that says nothing promises nothing beyond the
// contract.
func Describe(s Store) Properties {
	if d, ok := s.(Describer); ok {
		return d.Properties()
	}
	_, push := s.(Waiter)
	return Properties{Push: push}
}
