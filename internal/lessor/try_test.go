package lessor

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

// The first steps for a name that is idle are made by whoever asks for it. The store gives no answer to them: the request ends when it
// would have ended anyhow, and nobody holds the name.
func TestFirstStepsEndWithTheRequest(t *testing.T) {
	const leaves = 1234 * time.Millisecond
	for what, tt := range map[string]struct {
		wait  time.Duration
		after time.Duration
		end   func(*request, *Registry)
		want  error
	}{
		"the wait is over":        {2345 * time.Millisecond, 2345 * time.Millisecond, nil, errNoAnswer},
		"it doesn't wait":         {0, patience, nil, errNoAnswer},
		"the client has gone":     {time.Hour, leaves, func(q *request, _ *Registry) { q.cancel() }, context.Canceled},
		"it has gone, and tried":  {0, leaves, func(q *request, _ *Registry) { q.cancel() }, context.Canceled},
		"the registry closes":     {time.Hour, leaves, func(_ *request, r *Registry) { _ = r.Close() }, ErrClosed},
		"it closes, and it tries": {0, leaves, func(_ *request, r *Registry) { _ = r.Close() }, ErrClosed},
	} {
		for reply, fault := range map[string]faulty.Fault{"before": {Delay: time.Hour}, "after": {ReplyDelay: time.Hour}} {
			t.Run(what+", "+reply+" it lands", func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					r, net := w.registry()
					net.SetPlan(leasetest.Once(fault, leasetest.ByOwner("a")))
					begun := time.Now()
					req := wants("a", tt.wait)
					req.TTL = 10 * time.Minute // no request of it ends by itself within the patience
					q := send(r, req)
					if tt.end != nil {
						time.Sleep(leaves)
						tt.end(q, r)
					}
					<-q.done
					if got := q.at.Sub(begun).Truncate(time.Microsecond); got != tt.after || !errors.Is(q.err, tt.want) {
						t.Errorf("it ended after %v: %v", got, q.err)
					}
					if errors.Is(tt.want, ErrClosed) {
						return // what landed expires
					}
					time.Sleep(10 * time.Second) // for what is left to be done
					if n := len(r.Waiting("job")); n != 0 || w.Get("job").Owner != "" {
						t.Errorf("%d wait, and it holds: %+v", n, w.Get("job"))
					}
					if g, err := r.Acquire(t.Context(), wants("b", 0)); err != nil {
						t.Errorf("the next one: %+v, %v", g, err)
					}
				})
			})
		}
	}
}

// The same of one who doesn't wait, and whose first step is a read: it is told why it has nothing, not how the read was ended.
func TestFirstReadEndsWithTheRequest(t *testing.T) {
	for what, tt := range map[string]struct {
		after time.Duration
		end   func(*request, *Registry)
		want  error
	}{
		"it has waited long enough": {patience, nil, lease.ErrHeld},
		"the client has gone":       {time.Second, func(q *request, _ *Registry) { q.cancel() }, context.Canceled},
		"the registry closes":       {time.Second, func(_ *request, r *Registry) { _ = r.Close() }, ErrClosed},
	} {
		t.Run(what, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				r, net := w.registry()
				granted(t, r, wants("holder", 0))
				time.Sleep(2 * calm) // so that what was seen has to be read again
				reads := 0
				net.SetPlan(func(op faulty.Op) (f faulty.Fault) {
					if op.Kind == faulty.Get {
						reads++
						f.ReplyDelay = time.Hour
					}
					return f
				})
				begun := time.Now()
				req := wants("a", 0)
				req.TTL = 10 * time.Minute
				q := send(r, req)
				if tt.end != nil {
					time.Sleep(tt.after)
					tt.end(q, r)
				}
				<-q.done
				if got := q.at.Sub(begun).Truncate(time.Microsecond); got != tt.after || !errors.Is(q.err, tt.want) || reads != 1 {
					t.Errorf("it ended after %v and %d reads: %v", got, reads, q.err)
				}
			})
		})
	}
}

// Who comes while the first steps are made is served after that, and one who leaves then leaves in time.
func TestComesDuringTheFirstSteps(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, net := w.registry()
		net.SetPlan(leasetest.Once(faulty.Fault{Delay: 2 * time.Second}, leasetest.ByOwner("first")))
		begun := time.Now()
		first := send(r, wants("first", time.Minute))
		synctest.Wait()
		hasty, patient := send(r, wants("hasty", time.Second)), send(r, wants("patient", time.Minute))
		<-hasty.done
		if got := hasty.at.Sub(begun).Truncate(time.Microsecond); got != time.Second || hasty.err == nil {
			t.Errorf("the wait ended after %v: %v", got, hasty.err)
		}
		<-first.done
		if got := first.at.Sub(begun).Truncate(time.Microsecond); got != 2*time.Second || first.err != nil {
			t.Fatalf("granted after %v: %v", got, first.err)
		}
		released(t, r, first.grant.Record)
		<-patient.done
		if patient.err != nil || w.Writes() != 2 {
			t.Errorf("the next one: %v, after %d writes", patient.err, w.Writes())
		}
	})
}

// A request that is sent again waits for as long as it says, from then on.
func TestRequestSentAgainWaitsAnew(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		r, _ := w.registry()
		granted(t, r, Request{Key: "job", Owner: "holder", TTL: time.Hour})
		begun := time.Now()
		waits := Request{Key: "job", Owner: "b", TTL: ttl, ID: "k", Wait: time.Minute}
		send(r, waits)
		time.Sleep(40 * time.Second)
		again := send(r, waits)
		<-again.done
		if got := again.at.Sub(begun).Truncate(time.Microsecond); got != 100*time.Second {
			t.Errorf("its wait ended %v after the first one was sent: %v", got, again.err)
		}
	})
}
