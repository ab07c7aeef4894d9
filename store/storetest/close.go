package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

// reopen: a handle that is opened while others are there sees the same data, and so do they when it
// is closed.
func reopen(ctx context.Context, e *env) error { return reopening(ctx, e, true) }

// reopenAll: the data outlive all handles.
func reopenAll(ctx context.Context, e *env) error { return reopening(ctx, e, false) }

func reopening(ctx context.Context, e *env, keepOne bool) error {
	if keepOne {
		if _, err := e.open(ctx); err != nil {
			return err
		}
	}
	var versions []string // of "again", which is deleted and made again each time
	var kept store.Record
	sent := clock.System().Now()
	for life := range 4 {
		s, err := e.open(ctx)
		if err != nil {
			return err
		}
		if life == 0 {
			if kept, err = mustPut(ctx, s, full("kept")); err != nil {
				return err
			}
		}
		if err := mustMiss(ctx, s, "again"); err != nil {
			return fmt.Errorf("deleted before the handle was closed: %w", err)
		}
		got, err := s.Get(ctx, "kept")
		if err := errors.Join(err, same(got, kept)); err != nil {
			return fmt.Errorf("after a close and an open: %w", err)
		}
		if err := ageWithin("after a close and an open", got, sent); err != nil {
			return err
		}
		stale := kept
		sent = clock.System().Now()
		if kept, err = mustPut(ctx, s, kept); err != nil {
			return err
		}
		if err := e.conflict(ctx, s, "Put at a stale version", put(ctx, s, stale), kept); err != nil {
			return err
		}
		again, err := mustPut(ctx, s, held("again", 1))
		if err != nil {
			return err
		}
		if slices.Contains(versions, again.Version) {
			return fmt.Errorf("version %q came again after a close and an open", again.Version)
		}
		versions = append(versions, again.Version)
		if err := mustDelete(ctx, s, "again", again.Version); err != nil {
			return err
		}
		if err := s.Close(); err != nil {
			return fmt.Errorf("close: %w", err)
		}
	}
	return nil
}

// closed: after Close every method returns ErrClosed and does nothing, Close apart; other handles
// continue.
func closed(ctx context.Context, e *env) error {
	handles, err := e.openAll(ctx, 2)
	if err != nil {
		return err
	}
	s, other := handles[0], handles[1]
	rec, err := mustPut(ctx, s, held("k", 1))
	if err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	_, putErr := s.Put(ctx, rec)
	_, createErr := s.Put(ctx, held("new", 1))
	_, getErr := s.Get(ctx, "k")
	_, waitErr := store.Wait(ctx, s, "k", "")
	_, waitOnErr := store.Wait(ctx, s, "k", rec.Version)
	_, listErr := keysOf(ctx, s, "")
	for call, err := range map[string]error{
		"Put": putErr, "Put of a new key": createErr, "Get": getErr, "Delete": s.Delete(ctx, "k", rec.Version),
		"Wait": waitErr, "Wait at the stored version": waitOnErr, "List": listErr,
	} {
		if !errors.Is(err, store.ErrClosed) || errors.Is(err, store.ErrUnknownOutcome) {
			return fmt.Errorf("%s after Close: %v, want ErrClosed", call, err)
		}
	}
	if err := s.Close(); err != nil {
		return fmt.Errorf("second Close: %w", err)
	}
	if err := errors.Join(mustGet(ctx, other, rec), mustMiss(ctx, other, "new")); err != nil {
		return fmt.Errorf("on another handle: %w", err)
	}
	_, err = mustPut(ctx, other, rec)
	return err
}

// closeUnderUse: calls that meet a Close end with ErrClosed or as if there had been none, and
// writes tell the truth.
func closeUnderUse(ctx context.Context, e *env) error {
	const workers = 6
	survivor, err := e.open(ctx)
	if err != nil {
		return err
	}
	if _, err := mustPut(ctx, survivor, held("k", 1)); err != nil {
		return err
	}
	for round := range e.times(10, 2) {
		s, err := e.open(ctx)
		if err != nil {
			return err
		}
		var over atomic.Bool
		var warm sync.WaitGroup // everybody has worked for a while
		warm.Add(workers)
		err = together(ctx, workers+1, func(ctx context.Context, i int) error {
			if i == workers {
				warm.Wait()
				err := s.Close()
				over.Store(true)
				return err
			}
			ready := sync.OnceFunc(warm.Done)
			defer ready()
			for n := 0; ; n++ {
				if n == 3 {
					ready()
				}
				late := over.Load()
				a := attempt{what: "creating a key while the handle is closed", before: store.Record{Key: fmt.Sprintf("k/%d/%d/%d", round, i, n)}, nonce: "close"}
				a.run(ctx, s)
				_, getErr := s.Get(ctx, "k")
				if err := a.verify(ctx, survivor); err != nil {
					return err
				}
				if a.err != nil && !errors.Is(a.err, store.ErrClosed) && !errors.Is(a.err, store.ErrUnknownOutcome) {
					return fmt.Errorf("put while the handle is closed: %w, want ErrClosed", a.err)
				}
				if getErr != nil && !errors.Is(getErr, store.ErrClosed) {
					return fmt.Errorf("get while the handle is closed: %w, want ErrClosed", getErr)
				}
				if a.err != nil || getErr != nil {
					return nil
				}
				if late {
					return fmt.Errorf("put and get of a handle that was closed: done, want ErrClosed")
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}
