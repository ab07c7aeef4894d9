package driver

import (
	"context"

	"github.com/leasehold/leasehold/store"
)

// Toucher is the optional interface of stores whose records are shared with programs that know
// nothing of sessions.
type Toucher interface {
	// Touch renews a record that a session keeps, so that those programs see it renewed. From the
	// first Touch on, whose outcome may be unknown, they count the record's own TTL from the last
	// Touch. Before the first Touch, they leave the record to its session. Touch changes nothing of
	// the record but its Version. It blocks as Put does.
	//
	// A caller may send a touch several times at once, with one nonce, which no other touch has. A
	// copy that meets the version which another copy left returns that record, without an error.
	// The other errors are those of Put in [store.Store], with one difference: any other version
	// than rec's is a *[store.ConflictError]. So no late copy touches the record after later
	// touches.
	Touch(ctx context.Context, rec store.Record, nonce string) (store.Record, error)
}
