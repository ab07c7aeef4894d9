package server

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/memory"
)

// plain is a store that has none of the optional interfaces.
type plain struct{ store.Store }

// toucher and prover are what some stores can do besides.
type toucher struct{}

func (toucher) Touch(_ context.Context, rec store.Record, _ string) (store.Record, error) {
	return rec, nil
}

type prover struct{}

func (prover) PutOwn(_ context.Context, rec store.Record) (store.Record, error) { return rec, nil }
func (prover) WaitHolder(context.Context, string, string) (store.Record, error) {
	return store.Record{Key: "held"}, nil
}
func (prover) Proof() []*os.File { return []*os.File{os.Stdin} }

func counted(t *testing.T, l *latency, op string) uint64 {
	t.Helper()
	r := prometheus.NewRegistry()
	r.MustRegister(l.took)
	families, err := r.Gather()
	if err != nil || len(families) != 1 {
		t.Fatal(families, err)
	}
	for _, m := range families[0].GetMetric() {
		if m.GetLabel()[0].GetValue() == op {
			return m.GetHistogram().GetSampleCount()
		}
	}
	return 0
}

// A store that is measured can do what it could before, and claims no more.
func TestWhatIsMeasuredKeepsItsInterfaces(t *testing.T) {
	inner := memory.New(memory.Options{})
	defer func() { _ = inner.Close() }()
	for _, st := range []store.Store{
		plain{inner}, inner,
		struct {
			store.Store
			toucher
		}{Store: inner},
		struct {
			store.Store
			prover
		}{Store: inner},
		struct {
			store.Store
			toucher
			prover
		}{Store: inner},
	} {
		l := newLatency(clock.System())
		got := l.over(st)
		for _, of := range []reflect.Type{reflect.TypeFor[driver.Toucher](), reflect.TypeFor[driver.Witness]()} {
			if is, was := reflect.TypeOf(got).Implements(of), reflect.TypeOf(st).Implements(of); is != was {
				t.Errorf("%T: %v: %v, want %v", st, of, is, was)
			}
		}
		if is, was := store.Describe(got), store.Describe(st); is != was {
			t.Errorf("%T: described as %+v, want %+v", st, is, was)
		}
		if is, was := len(driver.Proof(got)), len(driver.Proof(st)); is != was {
			t.Errorf("%T: %d proofs, want %d", st, is, was)
		}
		key := fmt.Sprintf("%T", st)
		rec, err := got.Put(t.Context(), store.Record{Key: key[:min(len(key), 100)], Owner: "a", Token: 1, TTL: 1e9, Nonce: "n"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Wait(t.Context(), got, rec.Key, "other"); err != nil {
			t.Error(err)
		}
		if _, err := store.Confirm(t.Context(), got, rec.Key); err != nil {
			t.Error(err)
		}
		if _, err := got.Get(t.Context(), rec.Key); err != nil {
			t.Error(err)
		}
		for _, err := range got.List(t.Context(), "") {
			if err != nil {
				t.Error(err)
			}
		}
		if err := got.Delete(t.Context(), rec.Key, rec.Version); err != nil {
			t.Error(err)
		}
		for _, op := range []string{"put", "list", "delete"} {
			if n := counted(t, l, op); n != 1 {
				t.Errorf("%T: %s was counted %d times", st, op, n)
			}
		}
	}
}
