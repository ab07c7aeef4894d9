package lock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"
)

func TestAllOrNothing(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		p, q := w.process(nil), w.process(nil)
		var wg sync.WaitGroup
		for i, p := range []*process{p, q} {
			names := []string{"a", "b", "c", "b"}
			if i == 1 {
				slices.Reverse(names)
			}
			wg.Go(func() {
				for range 20 {
					set, err := AcquireAll(t.Context(), p.Session, names...)
					if err != nil {
						t.Error(err)
						return
					}
					if set.Lease("c").Check() != nil || set.Check() != nil {
						t.Error("not held")
					}
					time.Sleep(time.Second)
					if err := set.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		other, err := q.Acquire(t.Context(), "c")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := AcquireAll(ctx, p.Session, "a", "b", "c"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		for _, name := range []string{"a", "b"} {
			l, err := q.TryAcquire(t.Context(), name)
			if err != nil {
				t.Errorf("%s was kept: %v", name, err)
				continue
			}
			_ = l.Release(t.Context())
		}
		_ = other.Release(t.Context())
	})
}
