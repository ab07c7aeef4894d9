package lock

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/drive"
)

// online is a guard that asks for every request.
func (w *world) online() *fence.Online {
	w.T.Helper()
	guard, err := fence.NewOnline(Source(w.DB.Open()), fence.OnlineOptions{})
	if err != nil {
		w.T.Fatal(err)
	}
	return guard
}

func admits(t *testing.T, g fence.Guard, what string, s fence.Sequencer, admit bool) {
	t.Helper()
	if err := g.Check(t.Context(), s); (err == nil) != admit || err != nil && !errors.Is(err, fence.ErrStale) {
		t.Errorf("%s (%v): %v", what, s, err)
	}
}

// All shares of a semaphore that are held are admitted, each under the name of its slot, and none that isn't.
func TestSourceOfASemaphore(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		g, all := w.online(), []*Hold{}
		dying, living := w.process(nil), w.process(nil)
		for _, p := range []*process{dying, living, living} {
			h, err := semaphore(t, p.Session, 3, false).Acquire(t.Context(), 1)
			all = append(all, must(t, h, err))
		}
		for _, h := range all {
			admits(t, g, "held", h.Sequencer(), true)
		}
		other := all[0].Sequencer()
		other.Name = all[1].Sequencer().Name
		admits(t, g, "of another slot", other, false)
		other = all[1].Sequencer()
		other.Holder = "somebody"
		admits(t, g, "by another", other, false)
		for _, name := range []string{"licences", "licences#", "licences#7", "licences#01", "licences#-1", "#1", "others#1"} {
			other := all[1].Sequencer()
			other.Name = name
			admits(t, g, "under another name", other, false)
		}

		short, err := NewSemaphore(living.Session, "x", SemaphoreOptions{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		h, err := short.TryAcquire(t.Context(), 1)
		admits(t, g, "of a name of one letter", must(t, h, err).Sequencer(), true)

		if err := all[1].Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		admits(t, g, "released", all[1].Sequencer(), false)
		admits(t, g, "beside one that was released", all[2].Sequencer(), true)

		dying.Cut()
		time.Sleep(ttl)
		admits(t, g, "of one who died, and whose share nobody wants", all[0].Sequencer(), true)
		for range 2 {
			h, err := semaphore(t, living.Session, 3, false).Acquire(t.Context(), 1)
			next := must(t, h, err)
			admits(t, g, "held", next.Sequencer(), true)
		}
		admits(t, g, "of one who died, and whose share another has", all[0].Sequencer(), false)

		rec, err := w.DB.Open().Get(t.Context(), living.Key())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := drive.Break(t.Context(), w.DB.Open(), living.Key(), drive.EndTerm{By: "ada", Token: rec.Token}); err != nil {
			t.Fatal(err)
		}
		admits(t, g, "whose session was broken", all[2].Sequencer(), false)
	})
}

// The readers of a read/write lock are admitted beside each other; a writer alone.
func TestSourceOfAReadWriteLock(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		g := w.online()
		a, b := w.process(nil), w.process(nil)
		before, err := a.Manager().Acquire(t.Context(), "data")
		if err != nil {
			t.Fatal(err)
		}
		take := func(f func(context.Context) (*Hold, error)) *Hold {
			t.Helper()
			h, err := f(t.Context())
			return must(t, h, err)
		}
		release := func(all ...*Hold) {
			t.Helper()
			for _, h := range all {
				if err := h.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		rwa, rwb := rwmutex(t, a), rwmutex(t, b)
		admits(t, g, "a lease from before it was shared", before.Sequencer(), true)
		if err := before.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		ra := take(rwa.RLock)
		admits(t, g, "that lease, released", before.Sequencer(), false)
		rb := take(rwb.RLock)
		for _, h := range []*Hold{ra, rb, ra} {
			admits(t, g, "a reader", h.Sequencer(), true)
		}
		release(ra)
		admits(t, g, "a reader that has gone", ra.Sequencer(), false)
		admits(t, g, "a reader that is left", rb.Sequencer(), true)
		release(rb)
		admits(t, g, "the last reader, gone", rb.Sequencer(), false)
		writer := take(rwa.Lock)
		admits(t, g, "a writer", writer.Sequencer(), true)
		release(writer)
		admits(t, g, "a writer that has gone", writer.Sequencer(), false)
		again := take(rwb.RLock)
		admits(t, g, "a reader after it", again.Sequencer(), true)
		if err := b.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		admits(t, g, "whose session was closed", again.Sequencer(), false)
	})
}

func rwmutex(t *testing.T, p *process) *RWMutex {
	t.Helper()
	rw, err := NewRWMutex(p.Session, "data")
	if err != nil {
		t.Fatal(err)
	}
	return rw
}

// Leases, those of mutexes too, are what they are to [lease.Source].
func TestSourceOfALease(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		g, p := w.online(), w.process(nil)
		for _, name := range []string{"job", "job#1"} {
			m, err := NewMutex(p.Session, name, MutexOptions{Fair: true})
			if err != nil {
				t.Fatal(err)
			}
			first, err := m.Lock(t.Context())
			admits(t, g, "held", must(t, first, err).Sequencer(), true)
			if err := first.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			admits(t, g, "released", first.Sequencer(), false)
			next, err := m.Lock(t.Context())
			admits(t, g, "held again", must(t, next, err).Sequencer(), true)
			admits(t, g, "of the term before", first.Sequencer(), false)
		}
	})
}
