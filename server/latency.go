package server

import (
	"context"
	"errors"
	"iter"
	"os"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// latency measures how long the store takes.
type latency struct {
	clk    clock.Clock
	took   *prometheus.HistogramVec
	failed *prometheus.CounterVec
}

func newLatency(clk clock.Clock) *latency {
	return &latency{
		clk: clk,
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "leasehold_store_duration_seconds", Help: "How long the store took, by operation; of a list, until its first record.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"op"}),
		failed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "leasehold_store_errors_total", Help: "Operations that the store failed, by operation; that a record is not there, or was changed by another write, is none.",
		}, []string{"op"}),
	}
}

// done notes an operation that began then.
func (l *latency) done(op string, begun clock.Instant, err error) {
	l.took.WithLabelValues(op).Observe(l.clk.Now().Sub(begun).Seconds())
	switch {
	case err == nil, errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrConflict), errors.Is(err, context.Canceled):
	default:
		l.failed.WithLabelValues(op).Inc()
	}
}

// over returns st, measured, with the optional interfaces that st has.
func (l *latency) over(st store.Store) store.Store {
	t := timed{st, l}
	toucher, touches := st.(driver.Toucher)
	witness, proves := st.(driver.Witness)
	switch {
	case touches && proves:
		return struct {
			timed
			touching
			witnessing
		}{t, touching{toucher, l}, witnessing{witness, l}}
	case touches:
		return struct {
			timed
			touching
		}{t, touching{toucher, l}}
	case proves:
		return struct {
			timed
			witnessing
		}{t, witnessing{witness, l}}
	}
	return t
}

// timed is a store that is measured. What [store.Wait], [store.Describe] and [store.Confirm] do
// where a store lacks the interface, they do for it.
type timed struct {
	store.Store
	l *latency
}

// Get implements [store.Store].
func (t timed) Get(ctx context.Context, key string) (store.Record, error) {
	begun := t.l.clk.Now()
	rec, err := t.Store.Get(ctx, key)
	t.l.done("get", begun, err)
	return rec, err
}

// Put implements [store.Store].
func (t timed) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	begun := t.l.clk.Now()
	rec, err := t.Store.Put(ctx, rec)
	t.l.done("put", begun, err)
	return rec, err
}

// Delete implements [store.Store].
func (t timed) Delete(ctx context.Context, key, version string) error {
	begun := t.l.clk.Now()
	err := t.Store.Delete(ctx, key, version)
	t.l.done("delete", begun, err)
	return err
}

// List implements [store.Store].
func (t timed) List(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		begun, first := t.l.clk.Now(), true
		for rec, err := range t.Store.List(ctx, prefix) {
			if first {
				first = false
				t.l.done("list", begun, err)
			}
			if !yield(rec, err) {
				return
			}
		}
		if first {
			t.l.done("list", begun, nil)
		}
	}
}

// Wait implements [store.Waiter].
func (t timed) Wait(ctx context.Context, key, version string) (store.Record, error) {
	return store.Wait(ctx, t.Store, key, version)
}

// Properties implements [store.Describer].
func (t timed) Properties() store.Properties { return store.Describe(t.Store) }

// Confirm implements [store.Confirmer].
func (t timed) Confirm(ctx context.Context, key string) (store.Record, error) {
	begun := t.l.clk.Now()
	rec, err := store.Confirmed(t.Store).Get(ctx, key)
	t.l.done("confirm", begun, err)
	return rec, err
}

type touching struct {
	driver.Toucher
	l *latency
}

// Touch implements [driver.Toucher].
func (t touching) Touch(ctx context.Context, rec store.Record, nonce string) (store.Record, error) {
	begun := t.l.clk.Now()
	rec, err := t.Toucher.Touch(ctx, rec, nonce)
	t.l.done("touch", begun, err)
	return rec, err
}

type witnessing struct {
	w driver.Witness
	l *latency
}

// PutOwn implements [driver.Witness].
func (t witnessing) PutOwn(ctx context.Context, rec store.Record) (store.Record, error) {
	begun := t.l.clk.Now()
	rec, err := t.w.PutOwn(ctx, rec)
	t.l.done("put", begun, err)
	return rec, err
}

// WaitHolder implements [driver.Witness].
func (t witnessing) WaitHolder(ctx context.Context, key, version string) (store.Record, error) {
	return t.w.WaitHolder(ctx, key, version)
}

// Proof implements [driver.Witness].
func (t witnessing) Proof() []*os.File { return t.w.Proof() }
