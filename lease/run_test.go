package lease_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/faulty"
)

var errJob = errors.New("job failed")

func TestRun(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		err := n.Run(t.Context(), "job", func(ctx context.Context, l *lease.Lease) error {
			time.Sleep(time.Minute)
			valid(t, l)
			if ctx.Err() != nil || w.Get("job").Owner != n.Holder() {
				t.Errorf("context %v, record %+v", ctx.Err(), w.Get("job"))
			}
			return errJob
		})
		if err == nil || err.Error() != errJob.Error() || w.Get("job").Owner != "" {
			t.Errorf("Run: %v, the record %+v", err, w.Get("job"))
		}
		if err := n.Run(t.Context(), "job", func(context.Context, *lease.Lease) error { return nil }); err != nil {
			t.Errorf("second Run: %v", err)
		}
	})
}

func TestRunCancelled(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		ctx, cancel := context.WithCancelCause(t.Context())
		stopped := false
		n.Plan(func(op faulty.Op) faulty.Fault {
			if leasetest.Frees("job")(op) && !stopped {
				t.Error("released before the function returned")
			}
			return faulty.Fault{}
		})
		err := n.Run(ctx, "job", func(ctx context.Context, l *lease.Lease) error {
			cancel(errJob)
			<-ctx.Done()
			time.Sleep(time.Minute) // tidying up takes its time, and is covered
			valid(t, l)
			stopped = true
			return context.Cause(ctx)
		})
		if !errors.Is(err, errJob) || errors.Is(err, lease.ErrLost) || w.Get("job").Owner != "" {
			t.Errorf("Run: %v, the record %+v", err, w.Get("job"))
		}
	})
}

func TestRunPanics(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		defer func() {
			if p := recover(); p != "boom" {
				t.Errorf("recovered %v", p)
			}
			if w.Get("job").Owner != "" {
				t.Errorf("the record after the panic: %+v", w.Get("job"))
			}
		}()
		_ = n.Run(t.Context(), "job", func(context.Context, *lease.Lease) error { panic("boom") })
		t.Error("Run returned")
	})
}

func TestRunLost(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		err := n.Run(t.Context(), "job", func(ctx context.Context, l *lease.Lease) error {
			n.Outage.StartRefusing(errRefused)
			<-ctx.Done()
			var lost *lease.LostError
			if err := context.Cause(ctx); !errors.As(err, &lost) || lost.Cause != lease.CauseOutage {
				t.Errorf("the context's cause: %v", err)
			}
			n.Outage.End()
			return errJob
		})
		var lost *lease.LostError
		if !errors.Is(err, errJob) || !errors.Is(err, lease.ErrLost) || !errors.As(err, &lost) || lost.Cause != lease.CauseOutage {
			t.Errorf("Run: %v", err)
		}
		if w.Get("job").Owner != "" {
			t.Errorf("the record: %+v", w.Get("job"))
		}
	})
}

func TestRunNotAcquired(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.Node(lease.Options{}).Take("job")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := w.Node(lease.Options{}).Run(ctx, "job", func(context.Context, *lease.Lease) error {
			t.Error("called without the lease")
			return nil
		})
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, lease.ErrHeld) {
			t.Errorf("Run: %v", err)
		}
	})
}

// Closing the manager under Run ends the work, and Run says so.
func TestRunClosed(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		n := w.Node(lease.Options{})
		done := make(chan error)
		go func() {
			done <- n.Run(t.Context(), "job", func(ctx context.Context, _ *lease.Lease) error {
				<-ctx.Done()
				return nil
			})
		}()
		synctest.Wait()
		_ = n.Close()
		if err := <-done; !errors.Is(err, lease.ErrLost) || !errors.Is(err, lease.ErrClosed) {
			t.Errorf("Run: %v", err)
		}
	})
}
