package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// fill stores n records under prefix, several at a time, and returns them by key.
func fill(ctx context.Context, s store.Store, prefix string, n int) (map[string]store.Record, error) {
	const workers = 8
	stored := make([]store.Record, n)
	err := together(ctx, workers, func(ctx context.Context, w int) (err error) {
		for i := w; i < n && err == nil; i += workers {
			stored[i], err = s.Put(ctx, held(fmt.Sprintf("%s%05d", prefix, i), fence.Token(i+1)))
		}
		return err
	})
	byKey := map[string]store.Record{}
	for _, rec := range stored {
		byKey[rec.Key] = rec
	}
	return byKey, err
}

// listThousands: List yields every record under the prefix, whole, once, and no other.
func listThousands(ctx context.Context, e *env) error {
	handles, err := e.openAll(ctx, 2)
	if err != nil {
		return err
	}
	if err := mustBeEmpty(ctx, handles[0]); err != nil {
		return err
	}
	if _, err := fill(ctx, handles[0], "other/", 10); err != nil {
		return err
	}
	stored, err := fill(ctx, handles[0], "many/", e.times(3000, 300))
	if err != nil {
		return err
	}
	left := len(stored)
	for rec, err := range handles[1].List(ctx, "many/") {
		if err != nil {
			return err
		}
		want, ok := stored[rec.Key]
		if !ok {
			return fmt.Errorf("list yielded %q twice, or although it isn't under the prefix", rec.Key)
		}
		if err := same(rec, want); err != nil {
			return fmt.Errorf("yielded by List: %w", err)
		}
		delete(stored, rec.Key)
		left--
	}
	if left != 0 {
		return fmt.Errorf("list did not yield %d records of those stored", left)
	}
	return nil
}

// listUnderChange: while others come and go, a record that is there throughout is yielded exactly
// once, whether it is written or left alone, and as it was at some moment of the call.
func listUnderChange(ctx context.Context, e *env) error {
	handles, err := e.openAll(ctx, 2)
	if err != nil {
		return err
	}
	stored, err := fill(ctx, handles[0], "k/", e.times(400, 40))
	if err != nil {
		return err
	}
	var done atomic.Bool
	var acknowledged, sent atomic.Uint64 // of the record that is written all the time
	first, err := mustPut(ctx, handles[0], held("k/00010/written", 1))
	if err != nil {
		return err
	}
	acknowledged.Store(1)
	sent.Store(1)
	return together(ctx, 3, func(ctx context.Context, i int) error {
		switch i {
		case 0:
			return flicker(ctx, handles[1], &done)
		case 1:
			for rec := first; !done.Load(); {
				rec.Token++
				sent.Store(uint64(rec.Token))
				written, err := handles[0].Put(ctx, rec)
				if err != nil {
					return errors.Join(err, ctx.Err())
				}
				rec = written
				acknowledged.Store(uint64(rec.Token))
			}
			return nil
		}
		defer done.Store(true)
		for round := range e.times(30, 5) {
			floor := acknowledged.Load()
			yielded := map[string]store.Record{}
			for rec, err := range handles[round%2].List(ctx, "k/") {
				if err != nil {
					return err
				}
				_, stable := stored[rec.Key]
				if _, twice := yielded[rec.Key]; twice && (stable || rec.Key == first.Key) {
					return fmt.Errorf("list yielded %q twice", rec.Key)
				}
				yielded[rec.Key] = rec
			}
			for _, want := range stored {
				if err := same(yielded[want.Key], want); err != nil {
					return fmt.Errorf("yielded while other records changed: %w", err)
				}
			}
			if got := uint64(yielded[first.Key].Token); got < floor || got > sent.Load() {
				return fmt.Errorf("list yielded write %d of a record; %d was acknowledged before", got, floor)
			}
		}
		return nil
	})
}

// flicker creates and deletes records between those of fill.
func flicker(ctx context.Context, s store.Store, done *atomic.Bool) error {
	for i := 0; !done.Load(); i++ {
		rec, err := s.Put(ctx, held(fmt.Sprintf("k/%05d/flicker", i%50), 1))
		if err == nil {
			err = s.Delete(ctx, rec.Key, rec.Version)
		}
		if err != nil {
			return fmt.Errorf("a record that comes and goes: %w", err)
		}
	}
	return nil
}

// listBreak: an iteration that is left early frees what it held; a sequence can be iterated again.
func listBreak(ctx context.Context, e *env) error {
	s, err := e.open(ctx)
	if err != nil {
		return err
	}
	stored, err := fill(ctx, s, "k/", e.times(300, 30))
	if err != nil {
		return err
	}
	seq := s.List(ctx, "k/")
	for i := range 100 {
		n := 0
		for _, err := range seq {
			if err != nil {
				return err
			}
			if n++; n > i%5 {
				break
			}
		}
	}
	n := 0
	for _, err := range seq {
		if err != nil {
			return err
		}
		n++
	}
	if n != len(stored) {
		return fmt.Errorf("the sequence yielded %d records when iterated again, want %d", n, len(stored))
	}
	_, err = increment(ctx, s, "k/00000")
	return err
}

// listBodyUsesStore: the body of the loop may use the store, to write the records that it meets as
// well.
func listBodyUsesStore(ctx context.Context, e *env) error {
	s, err := e.open(ctx)
	if err != nil {
		return err
	}
	n := e.times(200, 20)
	if _, err := fill(ctx, s, "k/", n); err != nil {
		return err
	}
	met := 0
	for rec, err := range s.List(ctx, "k/") {
		if err != nil {
			return err
		}
		met++
		if err := mustGet(ctx, s, rec); err != nil {
			return err
		}
		if met%2 == 0 {
			err = mustDelete(ctx, s, rec.Key, rec.Version)
		} else {
			_, err = mustPut(ctx, s, rec)
		}
		if err != nil {
			return err
		}
	}
	if met != n {
		return fmt.Errorf("list yielded %d records, want %d", met, n)
	}
	keys, err := keysOf(ctx, s, "k/")
	if err == nil && len(keys) != n/2 {
		err = fmt.Errorf("%d records are left, want %d", len(keys), n/2)
	}
	return err
}

// listCancel: an iteration whose context ends says so. It never looks complete when it is not.
func listCancel(ctx context.Context, e *env) error {
	s, err := e.open(ctx)
	if err != nil {
		return err
	}
	stored, err := fill(ctx, s, "k/", e.times(2000, 200))
	if err != nil {
		return err
	}
	for _, after := range []int{1, 2, len(stored) / 2} {
		listCtx, cancel := context.WithCancelCause(ctx)
		n := 0
		var ended error
		for _, err := range s.List(listCtx, "k/") {
			if ended != nil {
				cancel(nil)
				return fmt.Errorf("list went on after %w", ended)
			}
			if ended = err; err == nil {
				n++
			}
			if n == after {
				cancel(errStop)
			}
		}
		cancel(nil)
		if ended == nil && n != len(stored) {
			return fmt.Errorf("list ended after %d of %d records without an error when its context was cancelled", n, len(stored))
		}
		if ended != nil && !errors.Is(ended, errStop) {
			return fmt.Errorf("list, cancelled: %w, want the context's cause", ended)
		}
	}
	return nil
}
