//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/store"
)

// tormentor lets the faults strike.
type tormentor struct {
	*fleet
	st      store.Store
	cluster cluster // nil where there is none
	sups    *supervisors
	stalls  stalls

	families *families      // for who looks
	pending  sync.WaitGroup // stops, breaks and failovers under way
	failing  sync.Mutex     // held while a failover is

	mu                   sync.Mutex
	kills, stops, breaks int
	meddled              int                     // records that an outsider deleted or changed
	seen                 map[string]store.Record // by name: what an outsider may put back
	failovers, struck    int                     // struck: supervisors and guards
	// Tries to use a name as another kind, and those that got it.
	otherwise, got int
	missed         int // faults that found nothing to strike
	longestStop    time.Duration
}

// torment carries a plan out. It returns when ctx is done or the plan is over, and no process is
// stopped any more.
func (t *tormentor) torment(ctx context.Context, faults []fault) {
	defer t.pending.Wait()
	start := t.clk.Now()
	for _, f := range faults {
		if clock.Sleep(ctx, t.clk, start.Add(f.at).Sub(t.clk.Now())) != nil {
			return
		}
		switch f.kind {
		case faultKill:
			t.count(&t.kills, t.kill(t.target(f)))
		case faultStop:
			t.stopFor(ctx, t.target(f), f.stopped)
		case faultDelete, faultFree, faultEdit, faultRestore:
			t.pending.Go(func() { t.meddle(ctx, name(f.name), f.kind) })
		case faultKind:
			t.pending.Go(func() { t.useOtherwise(ctx, name(f.name)) })
		case faultBreak:
			t.pending.Go(func() { t.breakHold(ctx, name(f.name)) })
		case faultFailover:
			t.pending.Go(func() { t.failOver(ctx) })
		default:
			t.pending.Go(func() { t.count(&t.struck, t.sups.strike(ctx, f)) })
		}
	}
	_ = clock.Sleep(ctx, t.clk, start.Add(t.Duration).Sub(t.clk.Now()))
}

func (t *tormentor) stopFor(ctx context.Context, p *process, d time.Duration) {
	paused := t.pause(p)
	t.count(&t.stops, paused)
	if !paused {
		return
	}
	t.mu.Lock()
	t.longestStop = max(t.longestStop, d)
	t.mu.Unlock()
	t.pending.Go(func() {
		_ = clock.Sleep(ctx, t.clk, d)
		t.resume(p)
	})
}

// breakHold breaks a hold as an operator does: the one that is there when it is looked at.
func (t *tormentor) breakHold(ctx context.Context, key string) {
	rec, err := store.Load(ctx, t.st, key)
	if err == nil && rec.Owner == "" {
		t.count(&t.breaks, false)
		return
	}
	if err == nil {
		_, err = drive.Break(ctx, t.st, key, drive.EndTerm{Token: rec.Token, By: "operator", Reason: "soak"})
	}
	if errors.Is(err, fence.ErrStale) || errors.Is(err, store.ErrNotFound) || ctx.Err() != nil || err != nil && t.hist.down(t.clk.Now()) {
		t.count(&t.breaks, false)
		return
	}
	if err == nil {
		t.hist.broke(eviction{key, rec.Token, t.clk.Now()})
	}
	t.count(&t.breaks, err == nil)
	t.wrong(err)
}

// failOver kills the server that leads, unless the one before isn't back. It is carried out even
// when ctx ends meanwhile: whoever ends then needs the store.
func (t *tormentor) failOver(ctx context.Context) {
	if !t.failing.TryLock() {
		t.count(&t.failovers, false)
		return
	}
	defer t.failing.Unlock()
	ctx, cancel := clock.WithTimeout(context.WithoutCancel(ctx), t.clk, patience)
	defer cancel()
	over := t.hist.outage(t.clk)
	err := t.cluster.failOver(ctx, over)
	over()
	t.count(&t.failovers, err == nil)
	if err != nil {
		t.wrong(fmt.Errorf("failover: %w", err))
	}
}

func (t *tormentor) count(n *int, struck bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if struck {
		*n++
	} else {
		t.missed++
	}
}
