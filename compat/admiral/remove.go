package admiral

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold/leasehold/internal/pairs"
	"github.com/leasehold/leasehold/store"
)

// Remove deletes the row of the lease, and the record through which operators ask its instances.
// The lease forgets its last token, so call Remove only for a lease that nobody will use again,
// such as that of a rehearsal. It changes nothing and returns an error while somebody holds the
// lease. A row that is not there is no error. It blocks until the store has answered. An instance
// that still runs may write its record again.
func (o Operator) Remove(ctx context.Context) error {
	rec, err := o.Record(ctx)
	switch {
	case err != nil:
		return err
	case rec.Owner != "":
		return fmt.Errorf("%s is held by %s: it is not deleted", rec.Key, rec.Owner)
	}
	control, err := store.Load(ctx, o.Store, pairs.Calls+o.Config.LeaseName)
	if err != nil {
		return err
	}
	for _, r := range []store.Record{rec, control} {
		if r.Version == "" {
			continue
		}
		if err := o.Store.Delete(ctx, r.Key, r.Version); err != nil && !errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("delete %s: %w", r.Key, err)
		}
	}
	return nil
}
