package lock

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
)

func TestReadersShareAndWritersDont(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var mu sync.Mutex
		readers, writers, most := 0, 0, 0
		var lastWriter fence.Token
		var wg sync.WaitGroup
		for i := range 8 {
			rw, err := NewRWMutex(w.process(nil).Session, "rw")
			if err != nil {
				t.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(2, uint64(i)))
			wg.Go(func() {
				for range 20 {
					write := rng.IntN(4) == 0
					lock, n := rw.RLock, &readers
					if write {
						lock, n = rw.Lock, &writers
					}
					h, err := lock(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					*n++
					most = max(most, readers)
					if writers > 1 || writers == 1 && readers > 0 {
						t.Errorf("%d writers and %d readers", writers, readers)
					}
					if h.Token() <= lastWriter {
						t.Errorf("token %d after a writer's %d", h.Token(), lastWriter)
					}
					if write {
						lastWriter = h.Token()
					}
					mu.Unlock()
					time.Sleep(time.Duration(rng.IntN(500)) * time.Millisecond)
					mu.Lock()
					*n--
					mu.Unlock()
					if err := h.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if most < 2 {
			t.Error("no two readers ever shared it")
		}
	})
}

// A writer that waits is not passed by readers who come after it.
func TestWriterIsNotStarved(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		var rws []*RWMutex
		for range 3 {
			rw, err := NewRWMutex(w.process(nil).Session, "rw")
			if err != nil {
				t.Fatal(err)
			}
			rws = append(rws, rw)
		}
		r1, err := rws[0].RLock(t.Context())
		must(t, r1, err)
		order := make(chan string, 2)
		var wg sync.WaitGroup
		for i, who := range []string{"writer", "reader"} {
			lock := []func(context.Context) (*Hold, error){rws[1].Lock, rws[2].RLock}[i]
			wg.Go(func() {
				h, err := lock(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				order <- who
				time.Sleep(time.Second)
				_ = h.Release(t.Context())
			})
			time.Sleep(time.Second)
		}
		if _, err := rws[2].TryRLock(t.Context()); !errors.Is(err, lease.ErrHeld) {
			t.Errorf("a reader passed the writer: %v", err)
		}
		_ = r1.Release(t.Context())
		wg.Wait()
		if a, b := <-order, <-order; a != "writer" || b != "reader" {
			t.Errorf("%s, %s", a, b)
		}
	})
}
