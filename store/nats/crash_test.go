package nats

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/servers"
	"github.com/leasehold/leasehold/store"
)

// crashes is how often the server is killed, and rests how long it is up in between.
const (
	crashes = 4
	rests   = 300 * time.Millisecond
)

// writer is the only one who writes its key, so it can tell what each of its writes must have done.
type writer struct {
	key  string
	rec  store.Record // the last state that is certain
	acks int
	lost int
}

// write writes until ctx ends, and checks each outcome.
func (w *writer) write(ctx context.Context, s *Store) error {
	for n := fence.Token(1); ctx.Err() == nil; n++ {
		next := held(w.key, n)
		next.Version = w.rec.Version
		tryCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		got, err := s.Put(tryCtx, next)
		cancel()
		if err == nil {
			w.rec, w.acks = got, w.acks+1
			continue
		}
		w.lost++
		stored, readErr := patientLoad(ctx, s, w.key)
		switch {
		case readErr != nil:
			return readErr
		case stored.Nonce == next.Nonce && !errors.Is(err, store.ErrUnknownOutcome):
			return fmt.Errorf("%s: write %d was reported as not done, by %w, and was done", w.key, n, err)
		case stored.Nonce != next.Nonce && stored.Version != w.rec.Version:
			return fmt.Errorf("%s: version %q was acknowledged, and stored is %q", w.key, w.rec.Version, stored.Version)
		}
		w.rec = stored
	}
	stored, err := patientLoad(ctx, s, w.key)
	if err == nil && stored.Token < w.rec.Token {
		err = fmt.Errorf("%s: write %d was acknowledged, and stored is %d", w.key, w.rec.Token, stored.Token)
	}
	w.rec = stored
	return err
}

// patientLoad reads until it succeeds.
func patientLoad(ctx context.Context, s *Store, key string) (store.Record, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*soon)
	defer cancel()
	for {
		tryCtx, cancelTry := context.WithTimeout(ctx, time.Second)
		rec, err := store.Load(tryCtx, s, key)
		cancelTry()
		if err == nil || ctx.Err() != nil {
			return rec, err
		}
	}
}

// chase waits for one version after the other until it has seen the last one, which is marked.
func chase(ctx context.Context, s *Store, key string) error {
	seen := ""
	for {
		rec, err := s.Wait(ctx, key, seen)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%s: the waiter was not woken for the last write; it has seen version %q", key, seen)
		case err != nil:
			time.Sleep(time.Millisecond) // a read that met the crash
		case rec.Note == "last":
			return nil
		default:
			seen = rec.Version
		}
	}
}

// The server is killed and restarted while some write and others wait: no acknowledged write is lost, none that was reported as not
// done is done, and every waiter is woken.
func TestServerCrashes(t *testing.T) {
	const keys = 4
	srv := servers.NATS(t)
	js := dial(t, srv.Addr)
	bucket := newBucket(t, js, 1)
	writing, stop := context.WithCancel(t.Context())
	waiting, cancel := context.WithTimeout(t.Context(), 3*soon)
	defer cancel()
	var writers, chasers sync.WaitGroup
	all := make([]writer, keys)
	s, other := open(t, js, bucket), open(t, dial(t, srv.Addr), bucket)
	for i := range all {
		w := &all[i]
		w.key = fmt.Sprint("k", i)
		writers.Go(func() {
			if err := w.write(writing, s); err != nil {
				t.Error(err)
			}
		})
		for _, handle := range []*Store{s, other} {
			chasers.Go(func() {
				if err := chase(waiting, handle, w.key); err != nil {
					t.Error(err)
				}
			})
		}
	}
	for range crashes {
		time.Sleep(rests)
		srv.Kill()
		srv.Restart()
	}
	time.Sleep(rests)
	stop()
	writers.Wait()
	for _, w := range all {
		w.rec.Note = "last"
		mustPut(t, other, w.rec)
		t.Logf("%s: %d writes acknowledged, %d not", w.key, w.acks, w.lost)
	}
	chasers.Wait()
}
