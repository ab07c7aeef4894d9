package lease_test

import (
	"testing"

	"github.com/leasehold/leasehold/lease"
)

// BenchmarkPair is what an acquisition and its release cost beside what the store does.
func BenchmarkPair(b *testing.B) {
	m, err := lease.NewManager(sieve{}, lease.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := m.Close(); err != nil {
			b.Error(err)
		}
	}()
	b.ReportAllocs()
	for b.Loop() {
		l, err := m.Acquire(b.Context(), "name")
		if err == nil {
			err = l.Release(b.Context())
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
