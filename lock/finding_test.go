package lock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/roster"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/faulty"
)

// waits is what a manager's program hears while it waits.
type waits struct {
	mu      sync.Mutex
	holders []string // of OnWait
	retries []string // of OnRetry
}

func (w *waits) heard() (holders, retries []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.holders), slices.Clone(w.retries)
}

// waiter is a session whose manager tells what it waits for.
func (w *world) waiter(heard *waits, plan faulty.Plan) *lease.Session {
	w.T.Helper()
	h := w.Host(plan)
	return h.Process(h.Net, lease.Options{
		OnWait: func(e *lease.HeldError) {
			heard.mu.Lock()
			defer heard.mu.Unlock()
			heard.holders = append(heard.holders, e.Holder)
			if shares := new(HeldError); !errors.As(e, &shares) && e.Name != "plain" {
				w.T.Errorf("%v doesn't say who holds the shares", e)
			}
		},
		OnRetry: func(key string, err error) {
			heard.mu.Lock()
			defer heard.mu.Unlock()
			heard.retries = append(heard.retries, fmt.Sprintf("%s: %v", key, err))
		},
	}).Session
}

// ways are those of taking the one name that there is.
func ways(t *testing.T, s *lease.Session) map[string]func(context.Context) (*Hold, error) {
	t.Helper()
	rw, err := NewRWMutex(s, "rw")
	if err != nil {
		t.Fatal(err)
	}
	fair, err := NewMutex(s, "fair", MutexOptions{Fair: true})
	if err != nil {
		t.Fatal(err)
	}
	plain, err := NewMutex(s, "plain", MutexOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sem := semaphore(t, s, 1, true)
	return map[string]func(context.Context) (*Hold, error){
		"rw": rw.Lock, "fair": fair.Lock, "plain": plain.Lock,
		"semaphore": func(ctx context.Context) (*Hold, error) { return sem.Acquire(ctx, 1) },
	}
}

// Who waits for a lock is told for whom, once for each, and a wait that comes to its end says who holds it.
func TestFinding_K5_AWaitSaysForWhom(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a := w.process(nil)
		for name, take := range ways(t, a.Session) {
			h, err := take(t.Context())
			if err != nil {
				t.Fatal(name, err)
			}
			heard := &waits{}
			s := w.waiter(heard, nil)
			ctx, cancel := context.WithTimeout(t.Context(), 2*ttl)
			_, err = ways(t, s)[name](ctx)
			cancel()
			held := new(HeldError)
			if !errors.Is(err, lease.ErrHeld) || !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &held) || !slices.Equal(held.Holders, []string{a.Manager().Holder()}) {
				t.Errorf("%s: %v: want that the time is over, and the holder %s", name, err, a.Manager().Holder())
			}
			if holders, _ := heard.heard(); !slices.Equal(holders, []string{a.Manager().Holder()}) {
				t.Errorf("%s: told of %q, want %s once", name, holders, a.Manager().Holder())
			}
			if err := h.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// Another holder is news, and so is a store that fails, once.
func TestFinding_K5_NewsWhileWaiting(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.process(nil), w.process(nil)
		take := func(s *lease.Session) *Hold {
			h, err := semaphore(t, s, 1, true).Acquire(t.Context(), 1)
			return must(t, h, err)
		}
		first := take(a.Session)
		second := make(chan *Hold, 1)
		go func() { second <- take(b.Session) }()
		time.Sleep(time.Second) // it is in the queue
		heard := &waits{}
		var mu sync.Mutex
		down := false
		s := w.waiter(heard, func(op faulty.Op) faulty.Fault {
			mu.Lock()
			defer mu.Unlock()
			if down && op.Key == "licences" {
				return faulty.Fault{Err: errors.New("no disk")}
			}
			return faulty.Fault{}
		})
		last := make(chan *Hold, 1)
		go func() { last <- take(s) }()
		time.Sleep(time.Second)
		if err := first.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		h := <-second
		time.Sleep(time.Second)
		if holders, retries := heard.heard(); !slices.Equal(slices.Compact(holders), []string{a.Manager().Holder(), b.Manager().Holder()}) || len(retries) > 0 {
			t.Errorf("told of %q and %q, want the two holders", holders, retries)
		}
		mu.Lock()
		down = true
		mu.Unlock()
		if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(ttl)
		if _, retries := heard.heard(); len(retries) != 1 || !strings.Contains(retries[0], "no disk") {
			t.Errorf("told of %q, want once that there is no disk", retries)
		}
		mu.Lock()
		down = false
		mu.Unlock()
		if err := (<-last).Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Readers that fill the roster, and have died, keep no other reader out: it looks at their sessions though nothing but the room is lacking.
func TestFinding_L9_TheDeadLeaveTheirPlaces(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p, q := w.process(nil), w.process(nil)
		dead, err := NewRWMutex(p.Session, "rw")
		if err != nil {
			t.Fatal(err)
		}
		for range MaxShares - 1 {
			h, err := dead.TryRLock(t.Context())
			must(t, h, err)
		}
		p.Cut()
		reader, err := NewRWMutex(q.Session, "rw")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := clock.WithTimeout(t.Context(), q.Manager().Clock(), 3*ttl)
		defer cancel()
		if _, err := reader.RLock(ctx); err != nil {
			t.Errorf("among the dead: %v", err)
		}
	})
}

// A hundred who hold a lock or wait for it fill its roster. Who comes then waits, and a writer has a place among readers that come and go.
func TestFinding_L9_WhoFindsNoPlaceWaits(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		a, b := w.process(nil), w.process(nil)
		readers, err := NewRWMutex(a.Session, "rw")
		if err != nil {
			t.Fatal(err)
		}
		writer, err := NewRWMutex(b.Session, "rw")
		if err != nil {
			t.Fatal(err)
		}
		var reading []*Hold
		for range MaxShares - 1 {
			h, err := readers.TryRLock(t.Context())
			reading = append(reading, must(t, h, err))
		}
		if _, err := readers.TryRLock(t.Context()); !errors.Is(err, lease.ErrHeld) {
			t.Errorf("one reader more: %v, want that it is held", err)
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		order := ""
		take := func(who string, lock func(context.Context) (*Hold, error)) {
			wg.Go(func() {
				h, err := lock(t.Context())
				if err != nil {
					t.Errorf("%s: %v", who, err)
					return
				}
				mu.Lock()
				order += who
				mu.Unlock()
				time.Sleep(time.Second)
				if err := h.Release(t.Context()); err != nil {
					t.Errorf("%s: %v", who, err)
				}
			})
		}
		take("w", writer.Lock)
		time.Sleep(time.Second)
		if s, err := roster.Load(t.Context(), b.Manager().Store(), "rw"); err != nil || len(s.Waiting) != 1 {
			t.Errorf("%+v, %v: want the writer in the queue", s, err)
		}
		for range 10 {
			take("r", readers.RLock)
			take("w", writer.Lock)
		}
		time.Sleep(time.Second)
		for _, h := range reading {
			if err := h.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
		wg.Wait()
		if len(order) != 21 || order[0] != 'w' {
			t.Errorf("%q had it, want 21, and the writer that waited in the queue before all others", order)
		}
	})
}
