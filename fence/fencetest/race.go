package fencetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/leasehold/leasehold/fence"
)

// Race lets eight writers write at once, 25 times each. Their tokens rise, arrive late, and are
// shared by the requests of one term. It fails t unless the resource did exactly the acknowledged
// writes, in the order of their tokens, and the newest of all. It is not for online guards, between
// whose check and write a term may begin.
//
// The resource must be one that was never written to under the name of t. Write waits or retries
// where writers meet: an error that is no *[fence.StaleError] fails t. Written returns the tokens
// of all writes that the resource has done, oldest first.
func Race(t *testing.T, write Write, written func() []fence.Token) {
	t.Helper()
	r := &race{name: t.Name(), write: write}
	if err := r.run(t.Context()); err != nil {
		t.Error(err)
	}
	if err := r.judge(written()); err != nil {
		t.Error(err)
	}
}

// race is what the writers share.
type race struct {
	name  string
	write Write
	sent  atomic.Uint64

	mu   sync.Mutex
	done []fence.Token // acknowledged
	err  error
}

// The writers of a race, and the writes of each. A term has perTerm writes; one in lateness of them
// is late by some terms.
const (
	writers, each     = 8, 25
	perTerm, lateness = 3, 4
)

func (r *race) run(ctx context.Context) error {
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 0))
			for range each {
				token := fence.Token(r.sent.Add(1)/perTerm) + 1
				if late := fence.Token(random.Uint64N(8)); random.IntN(lateness) == 0 && late < token {
					token -= late
				}
				r.try(ctx, token)
			}
		})
	}
	wg.Wait()
	r.try(ctx, fence.Token(r.sent.Load()/perTerm)+2)
	return r.err
}

// try writes once under a token, whose holder depends on nothing else.
func (r *race) try(ctx context.Context, token fence.Token) {
	err := r.write(ctx, fence.Sequencer{Name: r.name, Holder: fmt.Sprintf("holder-%d", token%5), Token: token})
	var stale *fence.StaleError
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		r.done = append(r.done, token)
	case !errors.As(err, &stale):
		r.err = errors.Join(r.err, fmt.Errorf("a write under token %d: %w: want a *fence.StaleError or none", token, err))
	}
}

// judge says what is wrong with the writes that the resource has done.
func (r *race) judge(written []fence.Token) error {
	if !slices.IsSorted(written) {
		return fmt.Errorf("the resource was written under the tokens %v: a write came after one of a later term", written)
	}
	slices.Sort(r.done)
	if !slices.Equal(r.done, written) {
		return fmt.Errorf("the resource was written under the tokens %v, and acknowledged %v", written, r.done)
	}
	newest := fence.Token(r.sent.Load()/perTerm) + 2
	if len(written) == 0 || written[len(written)-1] != newest {
		return fmt.Errorf("the newest write, under token %d, is missing in %v", newest, written)
	}
	return nil
}
