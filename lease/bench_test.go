package lease_test

import (
	"testing"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/memory"
)

// BenchmarkCheck is what a holder pays for asking before every step.
func BenchmarkCheck(b *testing.B) {
	st := memory.New(memory.Options{})
	m, err := lease.NewManager(st, lease.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := m.Close(); err != nil {
			b.Error(err)
		}
	}()
	own, err := m.Acquire(b.Context(), "own")
	if err != nil {
		b.Fatal(err)
	}
	s, err := m.OpenSession(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	kept, err := s.Acquire(b.Context(), "kept")
	if err != nil {
		b.Fatal(err)
	}
	for _, of := range []struct {
		name string
		l    *lease.Lease
	}{{"lease", own}, {"session", kept}} {
		b.Run("of="+of.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := of.l.Check(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
