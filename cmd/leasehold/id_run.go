package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/identity"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// What CMD finds in its environment beside what it finds under run.
const (
	envID      = "LEASEHOLD_ID"
	envFloor   = "LEASEHOLD_ID_FLOOR"
	envCeiling = "LEASEHOLD_ID_CEILING"
)

// idWork takes a value for a job.
type idWork struct {
	*job
	opts idAssign
}

// idHold is a value with a session of its own.
type idHold struct {
	*identity.Hold
	s *lease.Session
}

// Release gives the value back, and ends the session. Nobody knows which times CMD has used, so the next holder begins at the ceiling.
func (h *idHold) Release(ctx context.Context) error {
	return errors.Join(h.Hold.Release(ctx, time.Time{}), closeSession(ctx, h.s))
}

// take claims a value, and waits for that unless it isn't to.
func (w *idWork) take(ctx context.Context) (hold, error) {
	s, err := w.openSession(ctx)
	if err != nil {
		return nil, err
	}
	h, err := w.claim(ctx, s)
	if err == nil {
		return &idHold{h, s}, nil
	}
	closing, cancel := clock.WithTimeout(context.WithoutCancel(ctx), w.a.clk, w.timing.TTL/10)
	defer cancel()
	_ = closeSession(closing, s) // or it expires
	return nil, err
}

func (w *idWork) claim(ctx context.Context, s *lease.Session) (*identity.Hold, error) {
	o := w.opts.options()
	o.NoWait = true
	for {
		h, err := identity.Claim(ctx, s, w.opts.pool, o)
		var held *lease.HeldError
		full := new(identity.ExhaustedError)
		switch {
		case err == nil || w.job.opts.noWait && !errors.Is(err, identity.ErrMismatch) && !errors.Is(err, identity.ErrUndeclared):
			return h, err
		case ctx.Err() != nil, errors.Is(err, lease.ErrLost):
			return nil, err
		case errors.Is(err, identity.ErrMismatch), errors.Is(err, identity.ErrUndeclared), errors.Is(err, identity.ErrAhead),
			errors.Is(err, store.ErrInvalid), errors.Is(err, store.ErrCorrupt):
			return nil, w.a.idError(err)
		case errors.As(err, &held):
			w.words.waitFor(held)
		case errors.As(err, &full):
			w.words.waitForAny(fmt.Sprintf("all %d are held", full.Size))
		default:
			w.words.retry("", err)
		}
		if failed := clock.Sleep(ctx, w.a.clk, w.timing.TTL/20); failed != nil {
			return nil, errors.Join(context.Cause(ctx), err)
		}
	}
}

// variables tell CMD its value, and which times ids that are made with it may have.
func (w *idWork) variables(h hold) []string {
	v, ok := h.(*idHold)
	if !ok {
		return nil
	}
	floor, ceiling := v.Floor(), v.Ceiling()
	if whole := floor.Truncate(time.Millisecond); whole.Before(floor) {
		floor = whole.Add(time.Millisecond)
	}
	ms := func(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }
	return []string{envID + "=" + v.Value(), envFloor + "=" + ms(floor), envCeiling + "=" + ms(ceiling)}
}
