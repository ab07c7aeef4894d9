//go:build unix

package bench

import (
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/file"
	"github.com/leasehold/leasehold/store/memory"
)

func openFile(b *testing.B) store.Store {
	b.Helper()
	st, err := file.Open(b.Context(), filepath.Join(b.TempDir(), "bench.db"), file.Options{})
	if err != nil {
		b.Fatal(err)
	}
	closeAfter(b, st)
	return st
}

func closeAfter(b *testing.B, c interface{ Close() error }) {
	b.Cleanup(func() {
		if err := c.Close(); err != nil {
			b.Error(err)
		}
	})
}

func newManager(b *testing.B, st store.Store, opts lease.Options) *lease.Manager {
	b.Helper()
	m, err := lease.NewManager(st, opts)
	if err != nil {
		b.Fatal(err)
	}
	closeAfter(b, m)
	return m
}

// BenchmarkAcquireRelease is one acquisition and its release of a name that nobody else wants, by many callers of one
// process, each with a name of its own.
func BenchmarkAcquireRelease(b *testing.B) {
	for _, engine := range []struct {
		name string
		open func(*testing.B) store.Store
	}{
		{"memory", func(*testing.B) store.Store { return memory.New(memory.Options{}) }},
		{"file", openFile},
	} {
		for _, callers := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("store=%s/callers=%d", engine.name, callers), func(b *testing.B) {
				m := newManager(b, engine.open(b), lease.Options{})
				var group sync.WaitGroup
				each := b.N/callers + 1
				b.ResetTimer()
				for i := range callers {
					group.Go(func() {
						for range each {
							l, err := m.Acquire(b.Context(), strconv.Itoa(i))
							if err == nil {
								err = l.Release(b.Context())
							}
							if err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				group.Wait()
				rate(b, callers*each)
			})
		}
	}
}
