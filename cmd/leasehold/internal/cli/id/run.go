package id

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/hold"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/run"
	"github.com/leasehold/leasehold/identity"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// What CMD finds in its environment beside what it finds under run.
const (
	EnvID      = "LEASEHOLD_ID"
	EnvFloor   = "LEASEHOLD_ID_FLOOR"
	EnvCeiling = "LEASEHOLD_ID_CEILING"
	EnvWindow  = "LEASEHOLD_ID_WINDOW" // a file with both, which is kept up to date
	EnvUsed    = "LEASEHOLD_ID_USED"   // a file, to which CMD writes from when on it has made no id
	envLayout  = "LEASEHOLD_ID_LAYOUT" // the specification of its ids' layout, if one was given
)

// idWork takes a value for a job.
type idWork struct {
	*run.Job
	a    *app
	opts idAssign
}

// idHold is a value with a session of its own.
type idHold struct {
	*identity.Hold
	s     *lease.Session
	files *idFiles // nil where none can be made
	say   func(format string, args ...any)
}

// Release gives the value back, and ends the session. What CMD has not said it has not used is
// used: then the next holder begins at the ceiling.
func (h *idHold) Release(ctx context.Context) error {
	var used time.Time
	if h.files != nil {
		var err error
		if used, err = h.files.report(); err != nil {
			h.say("%s; the next ids with %s are later than %s", cli.OneLine(err), h.Value(), h.Ceiling().Format(time.RFC3339))
		}
		if err := h.files.close(); err != nil {
			h.say("%s", cli.OneLine(err))
		}
	}
	return errors.Join(h.Hold.Release(ctx, used), hold.CloseSession(ctx, h.s))
}

// take claims a value, and waits for that unless it isn't to.
func (w *idWork) take(ctx context.Context) (run.Hold, error) {
	s, err := w.OpenSession(ctx)
	if err != nil {
		return nil, err
	}
	h, err := w.claim(ctx, s)
	if err == nil {
		files, err := newIDFiles(h, w.a.Clock, cmp.Or(w.opts.window, w.Timing.TTL)/8, w.Words.Say)
		if err != nil {
			w.Words.Say("%s; CMD is told no $%s and no $%s", cli.OneLine(err), EnvWindow, EnvUsed)
		}
		return &idHold{h, s, files, w.Words.Say}, nil
	}
	closing, cancel := clock.WithTimeout(context.WithoutCancel(ctx), w.a.Clock, w.Timing.TTL/10)
	defer cancel()
	_ = hold.CloseSession(closing, s) // or it expires
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
		case err == nil || w.Job.Opts.NoWait && !errors.Is(err, identity.ErrMismatch) && !errors.Is(err, identity.ErrUndeclared):
			return h, err
		case ctx.Err() != nil, errors.Is(err, lease.ErrLost):
			return nil, err
		case errors.Is(err, identity.ErrMismatch), errors.Is(err, identity.ErrUndeclared), errors.Is(err, identity.ErrAhead),
			errors.Is(err, store.ErrInvalid), errors.Is(err, store.ErrCorrupt):
			return nil, w.a.idError(err)
		case errors.As(err, &held):
			w.Words.WaitFor(held)
		case errors.As(err, &full):
			w.Words.WaitForAny(fmt.Sprintf("all %d are held", full.Size))
		default:
			w.Words.Retry("", err)
		}
		if failed := clock.Sleep(ctx, w.a.Clock, w.Timing.TTL/20); failed != nil {
			return nil, errors.Join(context.Cause(ctx), err)
		}
	}
}

// variables tell CMD its value, and which times ids that are made with it may have.
func (w *idWork) variables(h run.Hold) []string {
	v, ok := h.(*idHold)
	if !ok {
		return nil
	}
	floor, ceiling := idBounds(v.Floor(), v.Ceiling())
	own := []string{EnvID + "=" + v.Value(), EnvFloor + "=" + floor, EnvCeiling + "=" + ceiling}
	if w.opts.layout.Bits() > 0 {
		own = append(own, envLayout+"="+w.opts.layout.Spec().String())
	}
	if v.files != nil {
		own = append(own, EnvWindow+"="+v.files.window, EnvUsed+"="+v.files.used)
	}
	return own
}
