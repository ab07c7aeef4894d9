//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// worker acquires names one after the other, and does under each lease what must not be done by two
// at once.
type worker struct {
	workerConfig
	teller
	clk    clock.Clock
	rng    *rand.Rand
	m      *lease.Manager
	s      *lease.Session // in every third process; nil in the others, or when it has ended
	guards []*guard
	seq    int

	requester *requester
}

// runWorker is the whole life of a worker. It ends when its standard input does.
func runWorker(encoded string) error {
	w := &worker{clk: clock.System()}
	w.w = os.Stdout
	if err := json.Unmarshal([]byte(encoded), &w.workerConfig); err != nil {
		return err
	}
	if err := switchOn(w.Bug); err != nil {
		return err
	}
	w.requester = newRequester(w.workerConfig)
	w.rng = rand.New(rand.NewPCG(w.Seed, uint64(w.Proc)))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { // ends with the process
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	st, finish, err := openStore(ctx, w.Engine, w.Store)
	for end := w.clk.Now().Add(patience); err != nil && w.clk.Now() < end && ctx.Err() == nil; {
		w.pause(ctx, w.TTL/4) // one server may be about to take over from another
		st, finish, err = openStore(ctx, w.Engine, w.Store)
	}
	if ctx.Err() != nil {
		return nil // told to end before it began
	}
	if err != nil {
		return err
	}
	w.m, err = lease.NewManager(&timed{st, &w.teller}, lease.Options{TTL: w.TTL, Name: fmt.Sprintf("slot-%d", w.Slot)})
	if err != nil {
		return errors.Join(err, finish())
	}
	for i := range w.Names {
		g, err := openGuard(filepath.Join(w.Dir, name(i)), name(i), w.Bug == bugGuard)
		if err != nil {
			return errors.Join(err, w.m.Close(), finish())
		}
		w.guards = append(w.guards, g)
	}
	for ctx.Err() == nil {
		w.term(ctx)
	}
	if w.s != nil {
		if err := w.s.Close(ctx); err != nil {
			w.fail("close the session", err)
		}
	}
	return errors.Join(w.requester.close(), w.m.Close(), finish())
}

// term is one acquisition and what is done under it.
func (w *worker) term(ctx context.Context) {
	i := w.rng.IntN(w.Names)
	begun := w.clk.Now()
	w.tell(event{Kind: wanted, Name: name(i), At: begun})
	l, err := w.acquire(ctx, name(i))
	if err != nil {
		w.tell(event{Kind: gone, Name: name(i), At: w.clk.Now()})
		if !errors.Is(err, lease.ErrHeld) && !errors.Is(err, lease.ErrLost) && !errors.Is(err, store.ErrKind) && ctx.Err() == nil {
			w.fail("acquire", err)
		}
		w.pause(ctx, w.TTL/20)
		return
	}
	e := event{Kind: acquired, Name: l.Name(), Token: l.Token(), Holder: l.Holder(), Since: begun, At: w.clk.Now()}
	w.tell(e)
	lost := w.hold(ctx, i, l)
	w.requester.over(l.Sequencer())
	e.Kind, e.At, e.Since, e.Text = released, w.clk.Now(), 0, ""
	var why *lease.LostError
	if errors.As(lost, &why) {
		e.Text = string(why.Cause)
	}
	if err := l.Release(ctx); err != nil && lost == nil {
		w.fail("release", err)
	}
	w.tell(e)
}

// acquire takes a name, by a try in one of four cases, and waits for a while in the others.
func (w *worker) acquire(ctx context.Context, key string) (*lease.Lease, error) {
	ctx, cancel := clock.WithTimeout(ctx, w.clk, w.patience())
	defer cancel()
	try := w.rng.IntN(4) == 0
	if w.Slot%3 != 0 {
		if try {
			return w.m.TryAcquire(ctx, key)
		}
		return w.m.Acquire(ctx, key)
	}
	if w.s == nil || w.s.Check() != nil {
		s, err := w.m.OpenSession(ctx)
		if err != nil {
			return nil, err
		}
		w.s = s
	}
	if try {
		return w.s.TryAcquire(ctx, key)
	}
	return w.s.Acquire(ctx, key)
}

// patience is how long a worker waits for a name.
func (w *worker) patience() time.Duration { return 5 * w.TTL }

// hold works under a lease for a while, mostly a fraction of the TTL, and returns the loss that
// ended it before, if one did.
func (w *worker) hold(ctx context.Context, i int, l *lease.Lease) error {
	d := time.Duration(w.rng.Int64N(int64(w.TTL / 4)))
	if w.rng.IntN(10) == 0 {
		d = longHold(w.TTL) // so that renewals count
	}
	for until := w.clk.Now().Add(d); w.clk.Now() < until && ctx.Err() == nil; {
		// The section begins before Check: it held the lease then, whatever happens to this process
		// in between.
		enter := w.clk.Now()
		if err := l.Check(); err != nil && w.Bug != bugCheck {
			return err
		}
		w.tell(event{Kind: entered, Name: l.Name(), Token: l.Token(), At: enter})
		w.pause(ctx, 10*time.Millisecond)
		w.tell(event{Kind: left, Name: l.Name(), Token: l.Token(), At: w.clk.Now()})

		w.seq++
		err := w.guards[i].write(l.Holder(), l.Token(), w.seq)
		switch {
		case err == nil:
			w.tell(event{Kind: accepted, Name: l.Name(), Token: l.Token(), Holder: l.Holder(), Seq: w.seq, At: w.clk.Now()})
		case errors.Is(err, fence.ErrStale):
			w.tell(event{Kind: refused, Name: l.Name(), Token: l.Token(), Holder: l.Holder(), At: w.clk.Now()})
		default:
			w.fail("guarded write", err)
		}
		w.request(ctx, l.Sequencer())
		w.pause(ctx, 10*time.Millisecond)
	}
	return nil
}

// longHold is the longest that a worker holds a name.
func longHold(ttl time.Duration) time.Duration { return ttl * 3 / 2 }

// pause waits for a time up to most.
func (w *worker) pause(ctx context.Context, most time.Duration) {
	_ = clock.Sleep(ctx, w.clk, time.Duration(w.rng.Int64N(int64(most))))
}

// fail tells that something did not work. Where the store was too slow, because a process was
// stopped while it held the store's lock as a rule, that is no fault of it.
func (w *worker) fail(what string, err error) {
	k := failed
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, store.ErrUnknownOutcome) {
		k = gaveUp
	}
	w.tell(event{Kind: k, At: w.clk.Now(), Text: what + ": " + err.Error()})
}
