package server

import (
	"context"
	"sync"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/lessor"
	"github.com/leasehold/leasehold/store/driver"
)

// background owns goroutines, which it waits for.
type background struct {
	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

// start runs f in a goroutine that close waits for. It reports false, and doesn't, when it is
// closed.
func (b *background) start(f func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return false
	}
	b.wg.Go(f)
	return true
}

func (b *background) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.wg.Wait()
}

// lettingGo is the share of a call's patience in which it lets go of what it has taken, when the
// store doesn't answer before.
const lettingGo = 10

// inTime calls do, which may have to let go of what it has taken after the store has not answered.
// That goes on in the background when the call has to be answered: then its outcome is unknown.
func inTime[T any](c *call, what string, do func(context.Context) (T, error)) (T, error) {
	type outcome struct {
		v   T
		err error
	}
	var none T
	ctx, rest := c.r.Context(), c.patience.limit/lettingGo
	c.patience.extend(-rest)
	done := make(chan outcome, 1)
	if !c.s.background.start(func() {
		v, err := do(ctx)
		done <- outcome{v, err}
	}) {
		return none, lessor.ErrClosed
	}
	select {
	case o := <-done:
		return o.v, o.err
	case <-ctx.Done():
	}
	timer := clock.NewTimer(c.s.clk, rest)
	defer timer.Stop()
	select {
	case o := <-done:
		return o.v, o.err
	case <-timer.C:
		return none, driver.Unknown(what, context.Cause(ctx))
	}
}
