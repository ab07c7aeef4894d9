package drive

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
)

const (
	// LookSingly is up to how many records are read one by one, all at a time. More are listed: by
	// what their names have in common, in one List.
	LookSingly = 16
	// A List that yields more than so many records for one of the session's is not repeated where
	// it is no more than readCrowded of them.
	crowd       = 16
	readCrowded = 1024
)

// Looks looks at the records of what one session keeps: its renewals say nothing of them, and an
// outsider may delete, edit or restore one. It is used by one goroutine at a time.
type Looks[L Member] struct {
	Store store.Store
	Term  func(L) store.Record // the term, by its owner, token and session
	Over  func(L) bool         // the term has ended: its record doesn't count any more
	// Is called, perhaps by several goroutines, for each whose record is the session's no more.
	End     func(L, protocol.Cause, error)
	crowded bool // a List yields others' records for the most part
}

// Look looks once. A List only raises doubts, which a read settles. A record that can't be read
// ends nothing: nobody takes it either. It blocks until all are looked at, or the first read fails,
// whose error it returns.
func (k *Looks[L]) Look(ctx context.Context, leases []L) error {
	if n := len(leases); n > LookSingly && (!k.crowded || n > readCrowded) {
		doubtful, err := k.sift(ctx, leases)
		if err != nil {
			return err
		}
		leases = doubtful
	}
	return k.settle(ctx, leases)
}

// sift lists the records of leases, and returns those of which the List shows anything else than
// that the session has them.
func (k *Looks[L]) sift(ctx context.Context, leases []L) (doubtful []L, err error) {
	left := make(map[string]L, len(leases))
	prefix := leases[0].Name()
	for _, l := range leases {
		left[l.Name()] = l
		prefix = common(prefix, l.Name())
	}
	yielded := 0
	for rec, err := range k.Store.List(ctx, prefix) {
		// Of a record that can't be read the List tells no key.
		if err != nil && !errors.Is(err, store.ErrCorrupt) {
			return nil, err
		}
		yielded++
		if l, ok := left[rec.Key]; ok && err == nil {
			if cause, _ := protocol.Ousted(rec, k.Term(l)); cause == protocol.NotLost {
				delete(left, rec.Key)
			}
		}
	}
	k.crowded = yielded > crowd*len(leases)
	for _, l := range left {
		doubtful = append(doubtful, l)
	}
	return doubtful, nil
}

// common returns what both names begin with.
func common(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return strings.ToValidUTF8(a[:n], "")
}

// settle reads the records of leases, some at a time, and ends those that others have ended. It
// returns a read's error.
func (k *Looks[L]) settle(ctx context.Context, leases []L) error {
	var wg sync.WaitGroup
	errs := make([]error, min(len(leases), LookSingly))
	for i := range errs {
		wg.Go(func() {
			for j := i; j < len(leases) && errs[i] == nil; j += len(errs) {
				errs[i] = k.read(ctx, leases[j])
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (k *Looks[L]) read(ctx context.Context, l L) error {
	if k.Over(l) {
		return nil
	}
	rec, err := store.Load(ctx, k.Store, l.Name())
	switch {
	case errors.Is(err, store.ErrCorrupt):
		return nil
	case err != nil:
		return err
	}
	if cause, why := protocol.Ousted(rec, k.Term(l)); cause != protocol.NotLost {
		k.End(l, cause, why)
	}
	return nil
}
