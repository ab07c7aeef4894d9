package chapter9

import (
	"context"
	"fmt"
	"sync"
)

// Resource is what the lock guards. It remembers the highest version that it has seen, and refuses
// a lower one.
type Resource struct {
	mu     sync.Mutex
	newest int64
	Done   []string // the work, in its order
}

// Do is the second check, in the same critical section as the work.
func (r *Resource) Do(version int64, work string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if version < r.newest {
		return fmt.Errorf("%s: version %d is refused, the newest is %d: %w", work, version, r.newest, ErrLost)
	}
	r.newest = version
	r.Done = append(r.Done, work)
	return nil
}

// Unchecked is a resource that believes every caller.
func (r *Resource) Unchecked(work string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Done = append(r.Done, work)
}

// Work is a worker. It looks whether it has the lock, which may end between that and the write; so
// it sends the version along, and the resource looks again.
func Work(ctx context.Context, s Service, h Held, r *Resource, work string, between func()) error {
	if err := s.Renew(ctx, h); err != nil {
		return err
	}
	between() // the process is paused here
	return r.Do(h.Version, work)
}

// Available returns how available n machines are of which need have to be up, each with
// availability p, if they fail independently.
func Available(n, need int, p float64) float64 {
	sum := 0.0
	for up := need; up <= n; up++ {
		ways := 1.0
		for i := range up {
			ways = ways * float64(n-i) / float64(i+1)
		}
		for range up {
			ways *= p
		}
		for range n - up {
			ways *= 1 - p
		}
		sum += ways
	}
	return sum
}
