// Package shards proves that a sharded space has one owner for each key. Real workers share a space
// over a network that delays, loses and repeats, on clocks that are off, while processes die, are
// cut off and are stopped, slices split, merge and move, and the store fails over. An observer
// outside of all of them asks the workers, at random instants, who owns a key:
//
//   - At no instant do two workers pass Check for one key. A worker that passes before and after
//     another one does, under one token, passed at the same time.
//   - The token of a key rises with each change of its owner, and of the slice that it is in. So no
//     guard that compares it accepts a write of an earlier owner after one of a later.
package shards

import (
	"fmt"
	"sync"

	"github.com/leasehold/leasehold/fence"
)

// Ledger is what the observer has seen. It is safe for concurrent use.
type Ledger struct {
	mu    sync.Mutex
	marks map[string]fence.Mark
	errs  []error
	seen  int
	terms int
}

// NewLedger returns an empty one.
func NewLedger() *Ledger { return &Ledger{marks: map[string]fence.Mark{}} }

// Checker is a worker, as the observer knows it.
type Checker interface {
	// Passes returns under which token, and as which slice, the worker may act on the key now.
	Passes(key string) (slice string, t fence.Token, ok bool)
}

// Observe asks all workers who owns the key.
func (l *Ledger) Observe(key string, workers []Checker) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, a := range workers {
		slice, token, ok := a.Passes(key)
		if !ok {
			continue
		}
		for j, b := range workers {
			if _, other, ok := b.Passes(key); ok && i != j {
				if _, still, ok := a.Passes(key); ok && still == token {
					l.errs = append(l.errs, fmt.Errorf("%s: worker %d owns it under token %d, and worker %d under token %d, at the same time", key, i, token, j, other))
				}
			}
		}
		holder := fmt.Sprintf("worker %d as %s", i, slice)
		mark, err := l.marks[key].Admit(key, holder, token)
		if err != nil {
			l.errs = append(l.errs, fmt.Errorf("%s: %w", holder, err))
			continue
		}
		if mark != l.marks[key] {
			l.terms++
		}
		l.marks[key] = mark
		l.seen++
	}
}

// Seen returns how often a worker passed, and how many terms of keys that were.
func (l *Ledger) Seen() (passed, terms int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.seen, l.terms
}

// Err returns the first thing that was wrong; nil for none.
func (l *Ledger) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.errs) == 0 {
		return nil
	}
	return l.errs[0]
}
