// Package wanted says how a caller wants to acquire a name. Its values are options of the calls of
// package lease that acquire. A program has the options that package lease makes. The primitives
// that are made of leases have these, too.
package wanted

import (
	"time"

	"github.com/leasehold/leasehold/store"
)

// Options says how a name is to be acquired.
type Options struct {
	TTL      time.Duration        // of this hold; 0 for the manager's
	Kind     store.Kind           // what the name is taken as
	Patience func() time.Duration // for how long it is left to others; may be nil
}

// As takes a name as another kind than a lease, such as [store.KindPool], so that nobody takes it
// as a plain lease meanwhile.
func As(kind store.Kind) func(*Options) { return func(o *Options) { o.Kind = kind } }

// Behind waits behind others. A name that has become free is left to them for as long as patience
// says, which is asked again whenever something changes; one that its holder has abandoned is freed
// first, so that they hear of it at once. A name that is handed over to the caller's manager is
// taken without delay. patience must not block.
func Behind(patience func() time.Duration) func(*Options) {
	return func(o *Options) { o.Patience = patience }
}
