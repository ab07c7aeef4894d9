package shard

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/shardmap"
)

// errRefused is the cause of the end of a slice whose Start returned an error.
var errRefused = errors.New("the slice could not be started")

// start begins a term of a slice. k.mu is held.
func (k *keeper) start(e shardmap.Slice) *Slice {
	o := k.t.o
	s := &Slice{Space: o.space.Name, Name: e.Name, From: e.From, To: e.To, Token: e.Token, worker: o, s: k.t.s, over: &k.t.over}
	s.ctx, s.cancel = context.WithCancelCause(k.t.ctx)
	if o.leaving() { // it comes too late
		s.phase = ended
		s.cancel(ErrLeft)
		wake(k.kick)
		return s
	}
	s.owned.Store(true)
	if o.w.Start == nil {
		s.phase = started
		s.serving.Store(true)
		return s
	}
	k.t.wg.Go(func() {
		err := o.w.Start(s.ctx, s)
		if err != nil { // it would come back at once if there is no other worker
			_ = clock.Sleep(s.ctx, o.clk, o.m.TTL()/10) // the context is looked at below
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		switch {
		case s.phase == starting && err == nil:
			s.phase = started
			s.serving.Store(true)
			wake(k.kick) // it may have to go already
		case s.phase == starting && s.ctx.Err() == nil:
			o.report(fmt.Errorf("start %v: %w", s, err))
			s.phase = draining
			s.cancel(fmt.Errorf("%w: %w", errRefused, err))
			fallthrough
		default: // it ended meanwhile
			k.finish(s)
		}
	})
	return s
}

// drain has a slice drained and stopped. k.mu is held.
func (k *keeper) drain(s *Slice) {
	if s.phase != started {
		return // it isn't there yet, or on its way
	}
	s.phase = draining
	if k.t.o.w.Drain == nil && k.t.o.w.Stop == nil {
		k.halt(s, ErrMoved)
		s.phase = ended
		wake(k.kick)
		return
	}
	k.t.wg.Go(func() {
		k.drainNow(s)
		k.mu.Lock()
		defer k.mu.Unlock()
		k.halt(s, ErrMoved)
		k.finish(s)
	})
}

// drainNow calls Drain, and waits no longer than it may take.
func (k *keeper) drainNow(s *Slice) {
	o := k.t.o
	if o.w.Drain == nil {
		return
	}
	ctx, cancel := clock.WithTimeout(s.ctx, o.clk, o.w.DrainWithin)
	defer cancel()
	returned := make(chan struct{})
	k.t.wg.Go(func() {
		defer close(returned)
		o.w.Drain(ctx, s)
	})
	select {
	case <-returned:
	case <-ctx.Done():
	}
}

// end ends a slice that isn't this worker's any more, or whose session is about to end. k.mu is
// held.
func (k *keeper) end(id string, s *Slice, cause error) {
	delete(k.held, id)
	was := s.phase
	k.halt(s, cause)
	if was == starting {
		s.phase = draining
	}
	if was == started {
		s.phase = draining
		k.t.wg.Go(func() {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.finish(s)
		})
	}
	// Else the goroutine that starts or drains it finishes it.
}

// halt has no check of the slice pass any more, and ends its context.
func (k *keeper) halt(s *Slice, cause error) {
	s.serving.Store(false)
	s.owned.Store(false)
	s.cancel(cause)
}

// finish stops a slice, once. k.mu is held, but not while Stop runs.
func (k *keeper) finish(s *Slice) {
	k.halt(s, ErrMoved)
	if s.phase == ended {
		return
	}
	s.phase = draining
	if k.t.o.w.Stop != nil {
		k.mu.Unlock()
		k.t.o.w.Stop(s)
		k.mu.Lock()
	}
	s.phase = ended
	wake(k.kick)
}

// prepare has the program prepare for a slice that is to come, once. k.mu is held.
func (k *keeper) prepare(id string, e shardmap.Slice) {
	o := k.t.o
	if o.w.Prepare == nil || k.prepared[id] != nil {
		return
	}
	s := &Slice{Space: o.space.Name, Name: e.Name, From: e.From, To: e.To, Token: e.Token, Previous: k.t.address(e.Owner), worker: o, s: k.t.s, over: &k.t.over}
	p := &preparation{}
	s.ctx, p.cancel = context.WithCancelCause(k.t.ctx)
	k.prepared[id] = p
	ctx, cancel := clock.WithTimeout(s.ctx, o.clk, o.w.PrepareWithin)
	k.t.wg.Go(func() {
		defer cancel()
		returned := make(chan struct{})
		k.t.wg.Go(func() {
			defer close(returned)
			if s.Previous == "" && e.Owner != "" {
				s.Previous, _ = o.addressOf(ctx, e.Owner) // it may stay unknown
			}
			o.w.Prepare(ctx, s)
		})
		select {
		case <-returned:
		case <-ctx.Done():
		}
		k.mu.Lock()
		defer k.mu.Unlock()
		p.ready, p.since = s.ctx.Err() == nil, o.clk.Now()
		wake(k.kick)
	})
}
