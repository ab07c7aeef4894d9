package lock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/internal/roster"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

// A writer that becomes a reader lets readers in, and no writer in between, though one waits.
func TestFinding_K8_Downgrade(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p, q := w.process(nil), w.process(nil)
		mine, other := rw(t, p.Session), rw(t, q.Session)
		writer, err := mine.Lock(t.Context())
		must(t, writer, err)
		wrote := make(chan *Hold, 1)
		go func() {
			h, err := other.Lock(t.Context())
			if err != nil {
				t.Error(err)
			}
			wrote <- h
		}()
		synctest.Wait()
		reader, err := mine.Downgrade(t.Context(), writer)
		must(t, reader, err)
		synctest.Wait()
		select {
		case h := <-wrote:
			t.Fatalf("%v writes beside %v", h.Sequencer(), reader.Sequencer())
		default:
		}
		if reader.Token() <= writer.Token() || reader.Check() != nil || !errors.Is(writer.Check(), ErrReleased) {
			t.Errorf("the reader has token %d and is %v, the writer has %d and is %v", reader.Token(), reader.Check(), writer.Token(), writer.Check())
		}
		if err := writer.Release(t.Context()); err != nil {
			t.Errorf("to release the hold that was: %v", err)
		}
		state, err := roster.Load(t.Context(), w.DB.Open(), "rw")
		if err != nil || len(state.Held) != 1 || state.Held[0].Weight != 1 || state.Held[0].Token != reader.Token() {
			t.Errorf("the roster: %+v, %v", state, err)
		}
		if err := reader.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if h := <-wrote; h.Token() <= reader.Token() {
			t.Errorf("token %d follows %d", h.Token(), reader.Token())
		}
	})
}

func rw(t testing.TB, s *lease.Session) *RWMutex {
	t.Helper()
	l, err := NewRWMutex(s, "rw")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Readers who came before a waiting writer read beside who was the writer.
func TestFinding_K8_ADowngradeLetsReadersIn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p, q := w.process(nil), w.process(nil)
		writer, err := rw(t, p.Session).TryLock(t.Context())
		must(t, writer, err)
		read := make(chan error, 1)
		go func() {
			_, err := rw(t, q.Session).RLock(t.Context())
			read <- err
		}()
		synctest.Wait()
		reader, err := rw(t, p.Session).Downgrade(t.Context(), writer)
		must(t, reader, err)
		if err := <-read; err != nil {
			t.Error(err)
		}
		if err := reader.Check(); err != nil {
			t.Error(err)
		}
	})
}

// A downgrade whose answer is lost, whether it landed or not, has the token that the roster shows; one that can't be made leaves nothing behind.
func TestFinding_K8_ADowngradeOfUnknownOutcome(t *testing.T) {
	for name, faults := range map[string][]faulty.Fault{
		"the answer is lost":                      {{LoseReply: true}},
		"the write is lost":                       {{Drop: true}},
		"the write is applied late":               {{ApplyLate: ttl / 15}},
		"the write lands before the one after it": {{ApplyLate: ttl / 30}, {Delay: ttl / 15}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				p := w.process(nil)
				mine := rw(t, p.Session)
				writer, err := mine.Lock(t.Context())
				must(t, writer, err)
				var n atomic.Int64
				p.Plan(func(op faulty.Op) faulty.Fault {
					if op.Kind != faulty.Put || op.Key != "rw" {
						return faulty.Fault{}
					}
					if i := int(n.Add(1)); i <= len(faults) {
						return faults[i-1]
					}
					return faulty.Fault{}
				})
				reader, err := mine.Downgrade(t.Context(), writer)
				must(t, reader, err)
				time.Sleep(ttl)
				state, err := roster.Load(t.Context(), w.DB.Open(), "rw")
				if err != nil || len(state.Held) != 1 || state.Held[0].Weight != 1 || state.Held[0].Token != reader.Token() || state.Token != reader.Token() {
					t.Errorf("token %d, and the roster: %+v, %v", reader.Token(), state, err)
				}
			})
		})
	}
	t.Run("never", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			p, q := w.process(nil), w.process(nil)
			mine := rw(t, p.Session)
			writer, err := mine.Lock(t.Context())
			must(t, writer, err)
			p.Plan(on(faulty.Put, "rw", faulty.Fault{Drop: true}))
			ctx, cancel := context.WithTimeout(t.Context(), ttl)
			defer cancel()
			if h, err := mine.Downgrade(ctx, writer); !errors.Is(err, context.DeadlineExceeded) || writer.Release(ctx) == nil {
				t.Fatalf("%v, %v; released: %v", h, err, writer.Release(ctx))
			}
			if err := writer.Check(); !errors.Is(err, ErrReleased) {
				t.Errorf("the writer: %v", err)
			}
			p.Plan(nil)
			ctx, cancel = context.WithTimeout(t.Context(), ttl)
			defer cancel()
			h, err := rw(t, q.Session).Lock(ctx)
			must(t, h, err)
		})
	})
}

// Who is not on the roster any more becomes no reader, and writes nothing; a roster that can't be read is an error at once.
func TestFinding_K8_ADowngradeOfWhatIsGone(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(rec *store.Record)
		want error
	}{
		"taken off": {func(rec *store.Record) { rec.Data = nil }, lease.ErrLost},
		"corrupt":   {func(rec *store.Record) { rec.Data = []byte("nonsense") }, store.ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				mine := rw(t, w.process(nil).Session)
				writer, err := mine.Lock(t.Context())
				must(t, writer, err)
				w.edit("rw", c.edit)
				ctx, cancel := context.WithTimeout(t.Context(), ttl)
				defer cancel()
				began := time.Now()
				if h, err := mine.Downgrade(ctx, writer); !errors.Is(err, c.want) || time.Since(began) > 0 {
					t.Errorf("%v, %v after %v", h, err, time.Since(began))
				}
			})
		})
	}
}

// A session that ends while a downgrade is on its way ends what it became.
func TestFinding_K8_ADowngradeThatIsTooLate(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process(nil)
		mine := rw(t, p.Session)
		writer, err := mine.Lock(t.Context())
		must(t, writer, err)
		p.Plan(func(op faulty.Op) faulty.Fault {
			if op.Kind == faulty.Put && op.Key == "rw" {
				p.Clk.Jump(2 * ttl)
			}
			return faulty.Fault{}
		})
		if h, err := mine.Downgrade(t.Context(), writer); !errors.Is(err, lease.ErrLost) {
			t.Errorf("%v, %v", h, err)
		}
	})
}

// What isn't a hold for writing of the lock stays as it is.
func TestFinding_K8_WhatCantBeDowngraded(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p, q := w.process(nil), w.process(nil)
		mine := rw(t, p.Session)
		reader, err := mine.RLock(t.Context())
		must(t, reader, err)
		m, err := NewMutex(p.Session, "m", MutexOptions{})
		if err != nil {
			t.Fatal(err)
		}
		alone, err := m.Lock(t.Context())
		must(t, alone, err)
		for _, h := range []*Hold{nil, reader, alone} {
			if got, err := mine.Downgrade(t.Context(), h); err == nil || !strings.Contains(err.Error(), "for writing") {
				t.Errorf("%v, %v", got, err)
			}
			if h != nil && h.Check() != nil {
				t.Error(h.Check())
			}
		}
		if err := reader.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		writer, err := mine.Lock(t.Context())
		must(t, writer, err)
		if h, err := rw(t, q.Session).Downgrade(t.Context(), writer); err == nil || writer.Check() != nil {
			t.Errorf("by another session: %v, %v; the writer: %v", h, err, writer.Check())
		}
		if err := writer.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if h, err := mine.Downgrade(t.Context(), writer); !errors.Is(err, ErrReleased) {
			t.Errorf("after the release: %v, %v", h, err)
		}
	})
}

// Names are had at once, all or none.
func TestFinding_K8_TryAll(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p, q := w.process(nil), w.process(nil)
		held, err := p.TryAcquire(t.Context(), "b")
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), ttl)
		defer cancel()
		if set, err := TryAcquireAll(ctx, q.Session, "c", "a", "b"); !errors.Is(err, lease.ErrHeld) || !strings.Contains(err.Error(), "b: ") {
			t.Fatalf("%v, %v", set, err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("a try took %v", took)
		}
		for _, name := range []string{"a", "c"} {
			l, err := p.TryAcquire(t.Context(), name)
			if err != nil {
				t.Fatalf("%s was not given back: %v", name, err)
			}
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := held.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		set, err := TryAcquireAll(t.Context(), q.Session, "c", "a", "b", "a")
		if err != nil || set.Check() != nil {
			t.Fatal(set, err)
		}
		for _, name := range []string{"a", "b", "c"} {
			if set.Lease(name) == nil || set.Lease(name).Check() != nil {
				t.Errorf("%s isn't held", name)
			}
		}
		if err := set.Release(t.Context()); err != nil {
			t.Error(err)
		}
		set, err = TryAcquireAll(t.Context(), p.Session, "a", "b", "c")
		if err != nil || set.Check() != nil {
			t.Errorf("after the release: %v, %v", set, err)
		}
	})
}

// The context of what runs under a lock ends with the hold, and the lock is released when it has returned.
func TestFinding_K8_Run(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p, q := w.process(nil), w.process(nil)
		failure := errors.New("its own")
		mine, other := rw(t, p.Session), rw(t, q.Session)
		var given context.Context
		soon, cancel := context.WithTimeout(t.Context(), 10*ttl)
		defer cancel()
		err := Run(soon, mine.Lock, func(ctx context.Context, h *Hold) error {
			given = ctx
			if ctx.Err() != nil || h.Check() != nil {
				t.Error(ctx.Err(), h.Check())
			}
			return failure
		})
		if !errors.Is(err, failure) || errors.Is(err, lease.ErrLost) {
			t.Errorf("the function's error: %v", err)
		}
		if given.Err() == nil {
			t.Error("its context outlives the hold")
		}
		err = Run(soon, other.TryLock, func(ctx context.Context, h *Hold) error { // it was released
			q.Cut()
			select {
			case <-ctx.Done():
			case <-time.After(2 * ttl):
				t.Error("its context outlives a hold that was lost")
			}
			return errors.New("its own")
		})
		if !errors.Is(err, lease.ErrLost) {
			t.Errorf("a hold that was lost: %v", err)
		}
		called := false
		held, err := mine.Lock(soon)
		must(t, held, err)
		if err := Run(t.Context(), mine.TryRLock, func(context.Context, *Hold) error { called = true; return nil }); !errors.Is(err, lease.ErrHeld) || called {
			t.Errorf("a lock that isn't to be had: %v, called %t", err, called)
		}
		func() {
			defer func() { _ = recover() }()
			_ = held.Release(t.Context())
			_ = Run(soon, mine.Lock, func(context.Context, *Hold) error { panic("as a program may") })
		}()
		h, err := mine.TryLock(t.Context())
		must(t, h, err)
	})
}

// No lock is reentrant: a second wait of one session ends with its context, and its error says that the session's own process holds the lock.
func TestFinding_K8_NotReentrant(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process(nil)
		for name, take := range ways(t, p.Session) {
			first, err := take(t.Context())
			must(t, first, err)
			ctx, cancel := context.WithTimeout(t.Context(), 2*ttl)
			_, err = take(ctx)
			cancel()
			own := fmt.Sprintf("held by %s", p.Manager().Holder())
			if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, lease.ErrHeld) || !strings.Contains(err.Error(), own) {
				t.Errorf("%s: %v", name, err)
			}
			if err := errors.Join(first.Check(), first.Release(t.Context())); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}
