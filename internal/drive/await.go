package drive

import (
	"context"

	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Await blocks until one of the two keys of a Wait has another version, or the holder of the first
// is known to be gone, and returns the record of that key. Without a second one it waits for the
// first alone.
func Await(ctx context.Context, st store.Store, act protocol.Action) (store.Record, error) {
	if act.Also == "" {
		return driver.WaitHolder(ctx, st, act.Key, act.Version)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	type answer struct {
		rec store.Record
		err error
	}
	also := make(chan answer, 1)
	go func() { // ends with ctx, and is waited for
		rec, err := store.Wait(ctx, st, act.Also, act.AlsoVersion)
		also <- answer{rec, err}
		cancel(err)
	}()
	rec, err := driver.WaitHolder(ctx, st, act.Key, act.Version)
	cancel(nil)
	if second := <-also; err != nil && second.err == nil {
		return second.rec, nil
	}
	return rec, err
}
