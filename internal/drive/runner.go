package drive

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Runner carries out what drivers ask for, on a store and a clock.
type Runner struct {
	Store store.Store
	Clock clock.Clock
	HTTP  bool // the store's [store.Properties] say OverHTTP
	// The owner whose work ends with this process, at the latest: see [driver.Witness]; "" for
	// none.
	Own string

	// Worth, if set, returns why a write that takes or renews a name would be worth too little now.
	// Then it isn't sent.
	Worth func() error

	// Go runs f in a goroutine that the owner of the runner waits for, and ends before the store is
	// closed; it reports false, and doesn't, when that is over. Without it no request is sent more
	// than once at a time.
	Go func(f func()) bool
}

// Nonce returns one that no other process can have: it comes from the kernel, so that a clone of
// this process makes others.
func Nonce() string { return rand.Text()[:20] }

// Env returns what a hold knows of the world.
func (r *Runner) Env() protocol.Env {
	return protocol.Env{Now: r.Clock.Now(), Wall: r.Clock.Wall(), Nonce: Nonce, Jitter: mathrand.Float64()}
}

// EnvIn is Env for a hold that is to be kept by the session of that term; nil for none.
func (r *Runner) EnvIn(session *Term) protocol.Env {
	env := r.Env()
	if session != nil {
		env.Session = session.Until()
	}
	return env
}

// Request carries out a read, a write, a touch or a wait. It blocks until it is answered, its time
// is over or ctx is done. late, if it isn't nil, is called when there is no answer by the time at
// which it is sent again: in another goroutine, and before Request returns. It must not block.
func (r *Runner) Request(ctx context.Context, act protocol.Action, late func()) (store.Record, error) {
	if act.Again != 0 && act.Again < act.Until && r.Go != nil {
		return r.repeat(ctx, act, late)
	}
	ctx, cancel := clock.WithDeadline(ctx, r.Clock, act.Until)
	defer cancel()
	return r.once(ctx, act)
}

// once sends a request once.
func (r *Runner) once(ctx context.Context, act protocol.Action) (store.Record, error) {
	switch act.Kind {
	case protocol.Read:
		return store.Load(ctx, r.Store, act.Key)
	case protocol.Write:
		if r.Worth != nil && act.Rec.Owner != "" {
			if err := r.Worth(); err != nil {
				return store.Record{}, err
			}
		}
		if r.Own != "" && act.Rec.Owner == r.Own {
			return driver.PutOwn(ctx, r.Store, act.Rec)
		}
		return r.Store.Put(ctx, act.Rec)
	case protocol.Touch:
		if toucher, ok := r.Store.(driver.Toucher); ok {
			return toucher.Touch(ctx, act.Rec, act.Nonce)
		}
		return store.Record{}, fmt.Errorf("touch %s: %w", act.Key, errors.ErrUnsupported)
	default:
		return Await(ctx, r.Store, act)
	}
}

// Do carries out one action of d, tells d what came of it, and returns how the world was then. It
// blocks; ctx ends it.
func (r *Runner) Do(ctx context.Context, d *Driver, session *Term, act protocol.Action) protocol.Env {
	var rec store.Record
	var err error
	switch act.Kind {
	case protocol.Idle, protocol.Refuse:
		return r.EnvIn(session)
	case protocol.Sleep:
		_ = clock.Sleep(ctx, r.Clock, act.Until.Sub(r.Clock.Now()))
	default:
		rec, err = r.Request(ctx, act, nil)
	}
	env := r.EnvIn(session)
	d.Tell(env, act, rec, err)
	return env
}

// Finish drives a hold that is being let go until it has ended; the world is as env says. It
// blocks. When ctx ends it, the outcome is unknown.
func (r *Runner) Finish(ctx context.Context, d *Driver, env protocol.Env) error {
	for {
		act := d.Next(env, true)
		if d.Hold.Phase == protocol.Ended {
			return d.Hold.Err
		}
		if ctx.Err() != nil {
			return driver.Unknown(d.Hold.Key, context.Cause(ctx))
		}
		env = r.Do(ctx, d, nil, act)
	}
}
