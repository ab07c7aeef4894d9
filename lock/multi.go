package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/driver"
)

// MaxNames is how many names [AcquireAll] and [TryAcquireAll] take at once.
const MaxNames = 1000

// MultiHold is several names that are held together. Its Token and Sequencer are those of the first
// name, in order. A resource that another of the names guards has to see the sequencer of its
// [MultiHold.Lease].
type MultiHold struct {
	*Hold
	leases map[string]*lease.Lease
}

// Lease returns the lease of one of the names, with its own token, or nil.
func (s *MultiHold) Lease(name string) *lease.Lease { return s.leases[name] }

// AcquireAll acquires all of the names, or none. It always acquires them in the same order. So two
// callers that want some of the same names never wait for each other.
//
// It blocks until all are held, ctx is done or the session ends. What it holds already is kept
// meanwhile, and released when AcquireAll fails. A name that is listed twice is acquired once.
func AcquireAll(ctx context.Context, s *lease.Session, names ...string) (*MultiHold, error) {
	return all(ctx, s, names, (*lease.Session).Acquire)
}

// TryAcquireAll is AcquireAll if all of the names are free at once. Otherwise it releases what it
// has acquired and returns an error. For a held name the error matches [lease.ErrHeld] and names
// the name. TryAcquireAll acquires one name after the other, so two callers at the same time may
// both fail. A store that doesn't answer is an error. The rest is as with [Semaphore.TryAcquire].
func TryAcquireAll(ctx context.Context, s *lease.Session, names ...string) (*MultiHold, error) {
	return all(ctx, s, names, (*lease.Session).TryAcquire)
}

// taking is one of the two ways to acquire a name under a session.
type taking func(*lease.Session, context.Context, string, ...lease.AcquireOption) (*lease.Lease, error)

func all(ctx context.Context, s *lease.Session, names []string, take taking) (*MultiHold, error) {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	if s == nil || len(names) == 0 || len(names) > MaxNames {
		return nil, fmt.Errorf("lock all: %d names: want a session and 1 to %d names", len(names), MaxNames)
	}
	for _, name := range names { // before anything is held
		if err := driver.CheckKey(name); err != nil {
			return nil, err
		}
	}
	set := &MultiHold{leases: map[string]*lease.Lease{}}
	var held []*lease.Lease
	for _, name := range names {
		l, err := take(s, ctx, name)
		if err != nil {
			for _, l := range slices.Backward(held) {
				err = errors.Join(err, l.Release(ctx))
			}
			return nil, heldBy(name, err)
		}
		held = append(held, l)
		set.leases[name] = l
	}
	set.Hold = ofLeases(names[0], held, nil)
	return set, nil
}
