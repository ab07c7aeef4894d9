package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

const (
	crashes       = 4                      // how often the server is killed
	crashRest     = 300 * time.Millisecond // how long it is up in between
	crashPatience = time.Minute            // how long until all have noticed that it is up again
)

// Crashes runs writers and waiters on two handles of a store, while crash kills its server and
// starts it again, several times. It returns an error when an acknowledged write is lost, or when a
// write that was reported as not done is done. It also returns an error when a waiter isn't woken
// for the last write. It is for engines whose server a test can kill; [Run] doesn't call it.
func Crashes(ctx context.Context, s, other store.Store, crash func()) error {
	writing, stop := context.WithCancel(ctx)
	defer stop()
	waiting, cancel := context.WithTimeout(ctx, (1+crashes)*crashPatience)
	defer cancel()
	var writers, chasers sync.WaitGroup
	all := make([]crashWriter, 4)
	wrong := make(chan error, 3*len(all))
	for i := range all {
		w := &all[i]
		w.key, w.pending = fmt.Sprint("crash", i), map[string]bool{}
		writers.Go(func() { wrong <- w.write(writing, s) })
		for _, handle := range []store.Store{s, other} {
			chasers.Go(func() {
				if err := chase(waiting, handle, w.key); err != nil {
					wrong <- err
				}
			})
		}
	}
	for range crashes {
		time.Sleep(crashRest)
		crash()
	}
	time.Sleep(crashRest)
	stop()
	writers.Wait()
	var err error
	for range all {
		err = errors.Join(err, <-wrong)
	}
	for i := range all {
		if err == nil {
			err = all[i].writeLast(ctx, other)
		}
	}
	if err != nil { // nobody will be woken
		cancel()
		chasers.Wait()
		return err
	}
	chasers.Wait()
	close(wrong)
	for late := range wrong {
		err = errors.Join(err, late)
	}
	return err
}

// lastNote marks the last write to a key.
const lastNote = "last"

// crashWriter is the only writer of its key, so it can tell what each of its writes must have done.
type crashWriter struct {
	key string
	rec store.Record // the last state that is certain
	// By nonce: writes of unknown outcome, over that very version, which may land yet.
	pending map[string]bool
}

// write writes until ctx ends, and checks each outcome.
func (w *crashWriter) write(ctx context.Context, s store.Store) error {
	w.rec.Key = w.key
	for n := fence.Token(1); ctx.Err() == nil; n++ {
		next := held(w.key, n)
		next.Version = w.rec.Version
		tryCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		got, err := s.Put(tryCtx, next)
		cancel()
		if err == nil {
			w.certain(got)
			continue
		}
		if errors.Is(err, store.ErrUnknownOutcome) {
			w.pending[next.Nonce] = true
		}
		stored, readErr := patientLoad(ctx, s, w.key)
		switch {
		case readErr != nil:
			return readErr
		case stored.Nonce == next.Nonce && !errors.Is(err, store.ErrUnknownOutcome):
			return fmt.Errorf("%s: write %d was reported as not done, by %w, and was done", w.key, n, err)
		case !w.pending[stored.Nonce] && stored.Version != w.rec.Version:
			return fmt.Errorf("%s: version %q was acknowledged, and stored is %q", w.key, w.rec.Version, stored.Version)
		}
		w.certain(stored)
	}
	stored, err := patientLoad(ctx, s, w.key)
	if err == nil && stored.Token < w.rec.Token {
		err = fmt.Errorf("%s: write %d was acknowledged, and stored is %d", w.key, w.rec.Token, stored.Token)
	}
	w.certain(stored)
	return err
}

// certain takes note of what is stored for certain. Of the writes that are pending, none lands once
// it has another version.
func (w *crashWriter) certain(rec store.Record) {
	if rec.Version != w.rec.Version {
		clear(w.pending)
	}
	w.rec = rec
}

// writeLast writes once more, when all is well, over what is stored.
func (w *crashWriter) writeLast(ctx context.Context, s store.Store) error {
	for {
		rec := w.rec
		rec.Note = lastNote
		_, err := mustPut(ctx, s, rec)
		var c *store.ConflictError
		if !errors.As(err, &c) || !w.pending[c.Current.Nonce] {
			return err
		}
		w.certain(c.Current)
	}
}

// patientLoad reads until it succeeds.
func patientLoad(ctx context.Context, s store.Store, key string) (store.Record, error) {
	return patiently(ctx, func(ctx context.Context) (store.Record, error) { return store.Load(ctx, s, key) })
}

// patiently reads until it succeeds.
func patiently(ctx context.Context, read func(context.Context) (store.Record, error)) (store.Record, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), crashPatience)
	defer cancel()
	for {
		tryCtx, cancelTry := context.WithTimeout(ctx, time.Second)
		rec, err := read(tryCtx)
		cancelTry()
		if err == nil || ctx.Err() != nil {
			return rec, err
		}
	}
}

// chase waits for one version after the other until it has seen the last one, which is marked.
func chase(ctx context.Context, s store.Store, key string) error {
	seen := ""
	for {
		rec, err := store.Wait(ctx, s, key, seen)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%s: the waiter was not woken for the last write; it has seen version %q", key, seen)
		case err != nil:
			time.Sleep(time.Millisecond) // a read that met the crash
		case rec.Note == lastNote:
			return nil
		default:
			seen = rec.Version
		}
	}
}
