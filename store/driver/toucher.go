package driver

import (
	"context"

	"github.com/leasehold/leasehold/store"
)

// Toucher is the optional extra of stores whose records other programs share that know nothing of sessions.
type Toucher interface {
	// Touch renews a record that a session keeps for the eyes of those programs. From the first Touch on, whose outcome may be
	// unknown, they count the record's own TTL from the last one; before, they leave the record to its session. The record
	// itself stays as it is, but for its Version.
	//
	// A touch may be sent several times at once, with one nonce, which no other touch has. A copy that meets the version which another
	// copy left returns that record: the touch is done. The other errors are those of [store.Store] Put; but any other version than rec's is a
	// *[store.ConflictError], so that no copy which comes late touches the record after later touches.
	Touch(ctx context.Context, rec store.Record, nonce string) (store.Record, error)
}
