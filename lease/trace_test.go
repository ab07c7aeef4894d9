package lease_test

import (
	"context"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// Every hook of a trace may be nil.
func TestATraceWithoutHooks(t *testing.T) {
	for name, tr := range map[string]*lease.Trace{
		"none": {},
		"an acquisition": {Acquire: func(ctx context.Context, _ lease.Acquisition) (context.Context, lease.AcquireTrace) {
			return ctx, lease.AcquireTrace{}
		}},
		"a term": {Acquire: func(ctx context.Context, _ lease.Acquisition) (context.Context, lease.AcquireTrace) {
			return ctx, lease.AcquireTrace{Begins: func(lease.Beginning) lease.TermTrace { return lease.TermTrace{} }}
		}},
		"a release": {Acquire: func(ctx context.Context, _ lease.Acquisition) (context.Context, lease.AcquireTrace) {
			return ctx, lease.AcquireTrace{Begins: func(lease.Beginning) lease.TermTrace {
				return lease.TermTrace{Leaves: func(ctx context.Context, _ string) (context.Context, func(error)) { return ctx, nil }}
			}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				n := w.Node(lease.Options{Trace: tr})
				s := n.Open()
				for _, l := range []*lease.Lease{n.Take("own"), n.Under(s, "kept")} {
					if _, err := n.TryAcquire(t.Context(), l.Name()); err == nil {
						t.Error("acquired twice")
					}
					if err := l.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

// The trace parent is in the record of the term, and of the name that is free; one that is too long is in neither. The info of
// other acquisitions is as it was.
func TestATraceParentIsStored(t *testing.T) {
	for _, parent := range []string{"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", strings.Repeat("x", 129)} {
		inWorld(t, func(t *testing.T, w *world) {
			var begun []lease.Beginning
			n := w.Node(lease.Options{Trace: &lease.Trace{Acquire: func(ctx context.Context, a lease.Acquisition) (context.Context, lease.AcquireTrace) {
				tr := lease.AcquireTrace{Begins: func(b lease.Beginning) lease.TermTrace { begun = append(begun, b); return lease.TermTrace{} }}
				if a.Name == "traced" {
					tr.TraceParent = parent
				}
				return ctx, tr
			}}})
			want := parent
			if len(parent) > 128 {
				want = ""
			}
			for range 2 {
				l := n.Take("traced")
				rec, err := n.Store().Get(t.Context(), "traced")
				if err != nil || rec.Info[store.InfoTraceParent] != want || rec.Info["host"] == "" {
					t.Errorf("held: %v, %v", rec.Info, err)
				}
				if err := l.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
				if rec, err = n.Store().Get(t.Context(), "traced"); err != nil || rec.Info[store.InfoTraceParent] != want || rec.Info["host"] != "" {
					t.Errorf("free: %v, %v", rec.Info, err)
				}
			}
			if len(begun) != 2 || begun[0].Before.Version != "" || begun[1].Before.Info[store.InfoTraceParent] != want || begun[1].Token <= begun[0].Token {
				t.Errorf("begun: %+v", begun)
			}
			n.Take("other")
			if rec, err := n.Store().Get(t.Context(), "other"); err != nil || rec.Info[store.InfoTraceParent] != "" {
				t.Errorf("another name: %v, %v", rec.Info, err)
			}
		})
	}
}
