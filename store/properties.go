package store

// Fencing says how far the tokens of an engine can be relied on when its server fails.
type Fencing string

// The kinds of fencing.
const (
	// FencingLinearizable: no write that was acknowledged is lost by a failure that the store survives, so a token is never
	// handed out twice.
	FencingLinearizable Fencing = "linearizable"
	// FencingPerPrimary: a failover may lose writes that were acknowledged. Tokens rise while one primary lives; after a
	// failover they rise as long as wall clocks are roughly right, and two holders may both believe in theirs until the
	// guarded resource refuses the older.
	FencingPerPrimary Fencing = "per primary"
)

// ReadWorth says what a Get shows.
type ReadWorth string

// The worths of a read, the best first.
const (
	// ReadDurable: every write that was acknowledged before, and nothing that a failure takes away which the store survives.
	ReadDurable ReadWorth = "durable"
	// ReadLeader: what the leader, or primary, has. One that was cut off shows the past until it notices, and some show a write
	// that isn't replicated yet. [Confirm] is durable.
	ReadLeader ReadWorth = "leader"
	// ReadLocal: what the server at hand has, however old. [Confirm] is durable.
	ReadLocal ReadWorth = "local"
)

// Settling says how a holder learns whether a write of unknown outcome landed. To the caller both look alike: it reads the record,
// and the write landed if the record bears its nonce.
type Settling string

// The ways to settle.
const (
	// SettledByRead: what a Get shows can't be lost, so the nonce in it is proof.
	SettledByRead Settling = "by a read"
	// SettledByWrite: a Get may show a write that a failover takes away. So a record that shows a write of this handle whose outcome
	// is unknown is returned, by Get, by Wait and in a conflict, only behind a second write that waits for all that the store waits
	// for. While that can't be done, they fail.
	SettledByWrite Settling = "by a second write"
)

// Properties are what an engine promises, for code that relies on it and for people.
type Properties struct {
	Engine      string  // "etcd"
	Consistency string  // how reads and writes are made consistent, in one line
	Fencing     Fencing // "" when the engine doesn't say; it may change while the store is open, as the server's settings do: ask again

	Read   ReadWorth // what a Get is worth; "" when the engine doesn't say
	Settle Settling  // how a write of unknown outcome is settled; "" when the engine doesn't say

	Push      bool   // its Wait is told by the server; else it polls
	Age       bool   // this handle vouches for ages
	Guarantee string // what a lease on it is worth, in one line

	// CheapRefusal: a Put that is refused, and comes back with the stored record, costs about as much as a Get. Then a name
	// that isn't known yet is supposed to be new, and acquired without a read before.
	CheapRefusal bool

	// WaitLingers: a Wait that is given up occupies the server for as long as it would have lasted. Then nobody waits for what only may
	// happen.
	WaitLingers bool

	// CheapWait: a Wait costs the server no request where it begins with the version that the last one returned, and one whose connection
	// died in silence goes on soon by itself. Then who waits for what a session keeps follows the session's record by another Wait, and
	// reads less often.
	CheapWait bool

	// OverHTTP: a request is one of a client of net/http, whose context an [net/http/httptrace.ClientTrace] in the caller's reaches. Where
	// it may wait for a connection that another request has, callers give up what they don't need any more before it is sent.
	OverHTTP bool
}

// Describer is the optional extra of stores that say what they promise. Use [Describe].
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
