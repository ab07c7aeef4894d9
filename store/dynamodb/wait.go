package dynamodb

import (
	"context"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Wait implements [store.Waiter]. DynamoDB doesn't push, so it polls, once for all waiters for a
// key on this store. The pause is an eighth of the time for which the present term has been
// watched, 20 ms at least and Options.PollMax at most, with jitter. One more read comes shortly
// before the record would have been unchanged for its TTL, so that a taker doesn't write in vain.
//
// A renewal doesn't speed up the polling, a change of holder does. In its first 8 s a term costs
// some 45 read units, and 3,840 an hour from then on at the default PollMax.
func (s *Store) Wait(ctx context.Context, key, version string) (store.Record, error) {
	if err := driver.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	return s.poller.Wait(ctx, key, version)
}
