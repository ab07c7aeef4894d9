package lock

import (
	"context"
	"fmt"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// Forget removes the kind of an unused lock's or election's name. The next use sets the kind, and
// the limit. The name's last token stays, and so do its ended terms.
//
// A name that is held, waited for or campaigned for is a *[store.KindError] that names who uses it.
// So is a pool of identities, which keeps its name for good. A name that isn't stored matches
// [store.ErrNotFound]. Forget blocks until the store has answered or ctx is done. After an error
// that matches [store.ErrUnknownOutcome] it can be called again.
func Forget(ctx context.Context, m *lease.Manager, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	l := watching(m, name, kindSemaphore, 1)
	over := map[string]bool{}
	return store.Update(ctx, m.Store(), name, func(rec *store.Record) (bool, error) {
		if rec.Version == "" {
			return false, fmt.Errorf("%s: %w", name, store.ErrNotFound)
		}
		f, err := l.find(ctx, *rec, over)
		if err != nil {
			return false, err
		}
		var members []string
		for _, e := range f.roster.before("") {
			members = append(members, e.Session)
		}
		if err := l.vacant(ctx, store.KindSemaphore, members, over); err != nil {
			return false, err
		}
		write := rec.Kind != "" || len(rec.Data) > 0
		*rec = f.rec
		rec.Kind, rec.Data = "", nil
		return write, nil
	})
}
