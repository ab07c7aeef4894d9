package storetest

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold/leasehold/store"
)

// waitMany: one write ends all Waits for its key.
func waitMany(ctx context.Context, e *env) error {
	const waiters = 60
	handles, err := e.openAll(ctx, 3)
	if err != nil {
		return err
	}
	rec, err := mustPut(ctx, handles[0], held("k", 1))
	if err != nil {
		return err
	}
	var waiting []<-chan waited
	for i := range waiters {
		waiting = append(waiting, e.startWait(ctx, handles[i%3], "k", rec.Version))
	}
	if err := settle(ctx, handles...); err != nil {
		return err
	}
	if rec, err = mustPut(ctx, handles[0], rec); err != nil {
		return err
	}
	for i, w := range waiting {
		got, err := soon(ctx, fmt.Sprintf("Wait number %d of many", i), w)
		if err := errors.Join(err, got.err); err != nil {
			return err
		}
		if err := same(got.rec, rec); err != nil {
			return err
		}
	}
	return nil
}

// fillKeys stores a record under each key.
func fillKeys(ctx context.Context, s store.Store, keys ...string) (stored []store.Record, err error) {
	for _, key := range keys {
		rec, err := mustPut(ctx, s, held(key, 1))
		if err != nil {
			return nil, err
		}
		stored = append(stored, rec)
	}
	return stored, nil
}

// waitOtherKeys: writes to other keys, however alike, don't end a Wait.
func waitOtherKeys(ctx context.Context, e *env) error {
	s, err := e.open(ctx)
	if err != nil {
		return err
	}
	rec, err := mustPut(ctx, s, held("a_b", 1))
	if err != nil {
		return err
	}
	waiting := e.startWait(ctx, s, "a_b", rec.Version)
	if err := settle(ctx, s); err != nil {
		return err
	}
	others, err := fillKeys(ctx, s, "a", "a_", "a_b/", "a_b/c", "A_B", "axb", "%", "a_b ")
	if err := errors.Join(err, settle(ctx, s)); err != nil {
		return err
	}
	for _, other := range others {
		if err := mustDelete(ctx, s, other.Key, other.Version); err != nil {
			return err
		}
	}
	if err := settle(ctx, s); err != nil {
		return err
	}
	select {
	case w := <-waiting:
		return fmt.Errorf("wait returned version %q and error %v, and only other keys were written", w.rec.Version, w.err)
	default:
	}
	if rec, err = mustPut(ctx, s, rec); err != nil {
		return err
	}
	got, err := soon(ctx, "Wait after writes to other keys", waiting)
	if err := errors.Join(err, got.err); err != nil {
		return err
	}
	return same(got.rec, rec)
}

// waitCancel: a Wait whose context ends returns the cause, and those beside it continue.
func waitCancel(ctx context.Context, e *env) error {
	handles, err := e.openAll(ctx, 2)
	if err != nil {
		return err
	}
	for round := range 10 {
		key := fmt.Sprintf("k/%d", round)
		rec := store.Record{Key: key}
		if round%2 == 1 {
			if rec, err = mustPut(ctx, handles[0], held(key, 1)); err != nil {
				return err
			}
		}
		waitCtx, cancel := context.WithCancelCause(ctx)
		var cancelled, staying []<-chan waited
		for _, s := range handles {
			cancelled = append(cancelled, e.startWait(waitCtx, s, key, rec.Version))
			staying = append(staying, e.startWait(ctx, s, key, rec.Version))
			cancelled = append(cancelled, e.startWait(waitCtx, s, key, rec.Version))
		}
		if round%4 < 2 {
			err = settle(ctx, handles...)
		}
		cancel(errStop)
		if err != nil {
			return err
		}
		for _, w := range cancelled {
			got, err := soon(ctx, "Wait, cancelled", w)
			if err != nil {
				return err
			}
			if !errors.Is(got.err, errStop) || errors.Is(got.err, store.ErrUnknownOutcome) {
				return fmt.Errorf("wait, cancelled: %v, want the context's cause, %v", got.err, errStop)
			}
		}
		next := held(key, 2)
		next.Version = rec.Version
		if next, err = mustPut(ctx, handles[0], next); err != nil {
			return err
		}
		for _, w := range staying {
			got, err := soon(ctx, "Wait beside one that was cancelled", w)
			if err := errors.Join(err, got.err, same(got.rec, next)); err != nil {
				return err
			}
		}
	}
	return nil
}

// waitClose: closing a handle ends its Waits, and nobody else's.
func waitClose(ctx context.Context, e *env) error {
	handles, err := e.openAll(ctx, 2)
	if err != nil {
		return err
	}
	rec, err := mustPut(ctx, handles[0], held("k", 1))
	if err != nil {
		return err
	}
	ended := []<-chan waited{e.startWait(ctx, handles[0], "k", rec.Version), e.startWait(ctx, handles[0], "never", "")}
	staying := e.startWait(ctx, handles[1], "k", rec.Version)
	if err := settle(ctx, handles...); err != nil {
		return err
	}
	if err := handles[0].Close(); err != nil {
		return err
	}
	for _, w := range ended {
		got, err := soon(ctx, "Wait on a handle that was closed", w)
		if err != nil {
			return err
		}
		if !errors.Is(got.err, store.ErrClosed) {
			return fmt.Errorf("wait on a handle that was closed: %v, want ErrClosed", got.err)
		}
	}
	if rec, err = mustPut(ctx, handles[1], rec); err != nil {
		return err
	}
	got, err := soon(ctx, "Wait after another handle was closed", staying)
	return errors.Join(err, got.err, same(got.rec, rec))
}
