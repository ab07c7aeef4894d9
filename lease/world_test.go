package lease_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/leasetest"
	"github.com/leasehold/leasehold/lease"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ttl is that of every node unless a test says otherwise, and validity what a holder counts on by default.
const (
	ttl      = leasetest.TTL
	validity = leasetest.Validity
)

var errRefused = errors.New("connection refused")

// The world of these tests.
type (
	world = leasetest.World
	node  = leasetest.Node
)

// inWorld runs f with a store that promises nothing.
func inWorld(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	leasetest.Run(t, func(t *testing.T, w *world) {
		w.Plain = true
		f(t, w)
	})
}

// resource is what a lease guards: it admits by token, and by nothing else.
type resource struct {
	t    *testing.T
	mark fence.Mark
}

// write is a request under the token of l.
func (r *resource) write(l *lease.Lease) error {
	mark, err := r.mark.Admit(l.Name(), l.Holder(), l.Token())
	r.mark = mark
	return err
}

func (r *resource) admits(l *lease.Lease) {
	r.t.Helper()
	if err := r.write(l); err != nil {
		r.t.Errorf("the resource refuses %s of %s: %v", l, l.Holder(), err)
	}
}

func (r *resource) refuses(l *lease.Lease) {
	r.t.Helper()
	if err := r.write(l); !errors.Is(err, fence.ErrStale) {
		r.t.Errorf("the resource admits %s of %s: %v", l, l.Holder(), err)
	}
}

// lostWith fails unless l is lost for that cause, by Check, by its context and for good.
func lostWith(t *testing.T, l *lease.Lease, cause lease.Cause) {
	t.Helper()
	synctest.Wait()
	var byCheck, byContext *lease.LostError
	if err := l.Check(); !errors.As(err, &byCheck) || byCheck.Cause != cause {
		t.Errorf("Check: %v, want a loss by %q", err, cause)
	}
	if err := context.Cause(l.Context()); !errors.As(err, &byContext) || byContext.Cause != cause {
		t.Errorf("the context's cause: %v, want a loss by %q", err, cause)
	}
	if l.Left() != 0 || l.ValidUntil() != clock.Ended {
		t.Errorf("%v left until %v after the loss", l.Left(), l.ValidUntil())
	}
}

// valid fails unless l may be relied on.
func valid(t *testing.T, l *lease.Lease) {
	t.Helper()
	if err := l.Check(); err != nil || l.Context().Err() != nil || l.Left() <= 0 {
		t.Errorf("%s: Check %v, context %v, %v left; want it valid", l, err, l.Context().Err(), l.Left())
	}
}

func release(t *testing.T, l *lease.Lease) {
	t.Helper()
	if err := l.Release(context.Background()); err != nil {
		t.Errorf("Release %s: %v", l, err)
	}
}
