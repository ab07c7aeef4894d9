package lock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/roster"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/faulty"
)

func TestSemaphoreKeepsItsLimit(t *testing.T) {
	for _, fair := range []bool{false, true} {
		t.Run(fmt.Sprintf("fair=%t", fair), func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				book := &ledger{t: t, limit: 5}
				var wg sync.WaitGroup
				for i := range 8 {
					sem := semaphore(t, w.process(nil).Session, 5, fair)
					rng := rand.New(rand.NewPCG(1, uint64(i)))
					wg.Go(func() {
						for range 20 {
							weight := 1 + rng.IntN(3)
							h, err := sem.Acquire(t.Context(), weight)
							if err != nil {
								t.Error(err)
								return
							}
							book.enter(h, weight, "")
							time.Sleep(time.Duration(rng.IntN(1000)) * time.Millisecond)
							book.leave(h, weight)
							if err := h.Release(t.Context()); err != nil {
								t.Error(err)
							}
							if err := h.Check(); !errors.Is(err, ErrReleased) || !errors.Is(context.Cause(h.Context()), ErrReleased) {
								t.Errorf("after the release: %v, %v", err, context.Cause(h.Context()))
							}
						}
					})
				}
				wg.Wait()
			})
		})
	}
}

func TestTrySaysWhoHolds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p, q := w.process(nil), w.process(nil)
		h, err := semaphore(t, p.Session, 2, true).TryAcquire(t.Context(), 2)
		must(t, h, err)
		_, err = semaphore(t, q.Session, 2, true).TryAcquire(t.Context(), 1)
		var held *HeldError
		if !errors.As(err, &held) || !errors.Is(err, lease.ErrHeld) || held.Free != 0 || !slices.Equal(held.Holders, []string{p.Manager().Holder()}) {
			t.Errorf("%v", err)
		}
	})
}

// A session that is renewed just before it would be closed keeps what it holds.
func TestSessionRenewedAtTheLastMomentKeepsItsShare(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process(nil)
		h, err := semaphore(t, p.Session, 1, false).Acquire(t.Context(), 1)
		must(t, h, err)
		renewed := 0
		q := w.process(func(op faulty.Op) faulty.Fault {
			if op.Kind == faulty.Put && op.Key == p.Key() { // it is about to be closed
				renewed++
				w.edit(p.Key(), func(*store.Record) {})
			}
			return faulty.Fault{}
		})
		p.Cut()
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2*ttl-time.Second)
		defer cancel()
		if _, err := semaphore(t, q.Session, 1, false).Acquire(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		if renewed == 0 {
			t.Error("nobody tried to close the session")
		}
	})
}

// Who is stopped while its share is being granted, past the end of its session, does not hold it when it goes on.
func TestSessionThatEndedWhileTheShareWasGranted(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var p *process
		p = w.process(func(op faulty.Op) faulty.Fault {
			if op.Kind == faulty.Put && op.Key == "licences" && p.Check() == nil {
				p.Clk.Pause() // no timer fires, and time goes on
				p.Clk.Jump(ttl)
			}
			return faulty.Fault{}
		})
		if h, err := semaphore(t, p.Session, 1, false).TryAcquire(t.Context(), 1); !errors.Is(err, lease.ErrLost) {
			t.Errorf("%v, %v", h, err)
		}
		p.Clk.Resume()
	})
}

// Who closes its session frees all its shares with it.
func TestSessionsEndFreesItsShares(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p, q := w.process(nil), w.process(nil)
		h, err := semaphore(t, p.Session, 1, true).Acquire(t.Context(), 1)
		must(t, h, err)
		if err := p.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if h.Check() == nil {
			t.Error("the share outlives its session")
		}
		got, err := semaphore(t, q.Session, 1, true).TryAcquire(t.Context(), 1)
		must(t, got, err)
		if _, err := semaphore(t, p.Session, 1, true).Acquire(t.Context(), 1); !errors.Is(err, lease.ErrLost) && err == nil {
			t.Errorf("acquired under a session that is over: %v", err)
		}
	})
}

func TestMismatch(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process(nil)
		h, err := semaphore(t, p.Session, 2, false).Acquire(t.Context(), 2)
		must(t, h, err)
		var mismatch *MismatchError
		if _, err := semaphore(t, p.Session, 3, false).TryAcquire(t.Context(), 1); !errors.As(err, &mismatch) || !strings.Contains(err.Error(), "limit is 2, not 3") {
			t.Errorf("another limit: %v", err)
		}
		rw, err := NewRWMutex(p.Session, "licences")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := rw.TryRLock(t.Context()); !errors.Is(err, store.ErrKind) {
			t.Errorf("another kind: %v", err)
		}
		if err := SetLimit(t.Context(), p.Manager(), "licences", 1); !errors.Is(err, ErrMismatch) {
			t.Errorf("a limit below what is held: %v", err)
		}
		if err := SetLimit(t.Context(), p.Manager(), "licences", 3); err != nil {
			t.Error(err)
		}
		got, err := semaphore(t, p.Session, 3, false).TryAcquire(t.Context(), 1)
		must(t, got, err)
		for what, err := range map[string]error{
			"limit 0":         second(NewSemaphore(p.Session, "x", SemaphoreOptions{})),
			"limit too large": second(NewSemaphore(p.Session, "x", SemaphoreOptions{Limit: MaxShares + 1})),
			"no name":         second(NewRWMutex(p.Session, "")),
			"no session":      second(NewRWMutex(nil, "x")),
			"weight 0":        second(semaphore(t, p.Session, 3, false).TryAcquire(t.Context(), 0)),
			"weight 4":        second(semaphore(t, p.Session, 3, false).TryAcquire(t.Context(), 4)),
			"no names":        second(AcquireAll(t.Context(), p.Session)),
			"a bad name":      second(AcquireAll(t.Context(), p.Session, "ok", "")),
		} {
			if err == nil {
				t.Errorf("%s is accepted", what)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }

// A roster that can't be read is an error that names it, and is left as it is.
func TestRosterOfOthersIsLeftAlone(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p := w.process(nil)
		for _, data := range []string{"nonsense", `{"v":2}`, `{"v":1,"kind":"semaphore","limit":1,"held":[{"id":"a","weight":2}]}`} {
			w.Edit("licences", func(rec *store.Record) {
				rec.Kind, rec.Data, rec.Token, rec.Nonce = store.KindSemaphore, []byte(data), rec.Token+1, "x"
			})
			cur := w.Get("licences")
			if _, err := semaphore(t, p.Session, 1, true).Acquire(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "licences") {
				t.Errorf("%s: %v", data, err)
			}
			if now := w.Get("licences"); now.Version != cur.Version {
				t.Errorf("%s was overwritten", data)
			}
		}
	})
}

// A roster with all that fits is still a record that stores take.
func TestFullRosterFits(t *testing.T) {
	r := roster.Roster{Format: roster.Format, Kind: roster.Semaphore, Limit: MaxShares}
	for i := range MaxShares {
		e := roster.Entry{ID: strings.Repeat("x", 26), Session: strings.Repeat("s", store.MaxKey), Weight: 1, Slot: i, Token: fence.MaxToken, Since: time.Unix(1e9, 123456789)}
		r.Held = append(r.Held, e)
	}
	rec := store.Record{Key: "x", Kind: store.KindSemaphore, Nonce: "n", Token: fence.MaxToken}
	for range store.MaxPast { // as leases have been held of the same name
		rec.Past = append(rec.Past, store.Term{
			Owner: strings.Repeat("o", store.MaxKey), Token: fence.MaxToken, From: time.Unix(1e9, 123456789), Until: time.Unix(2e9, 1), Why: strings.Repeat("w", store.MaxKey),
		})
	}
	if err := r.Write(&rec); err != nil {
		t.Fatal(err)
	}
	if err := driver.Check(rec); err != nil {
		t.Error(err)
	}
}
