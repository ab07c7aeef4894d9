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

// Properties are what an engine promises, for code that relies on it and for people.
type Properties struct {
	Engine      string  // "etcd"
	Consistency string  // how reads and writes are made consistent, in one line
	Fencing     Fencing // "" when the engine doesn't say
	Push        bool    // its Wait is told by the server; else it polls
	Age         bool    // this handle vouches for ages
	Guarantee   string  // what a lease on it is worth, in one line

	// CheapRefusal: a Put that is refused, and comes back with the stored record, costs about as much as a Get. Then a name
	// that isn't known yet is supposed to be new, and acquired without a read before.
	CheapRefusal bool
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
