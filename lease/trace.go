package lease

import (
	"context"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// Trace has the hooks by which telemetry follows acquisitions, and the terms that come of them.
// Package leaseotel makes them for OpenTelemetry. Every hook may be nil.
//
// The hooks run on the goroutines that acquire, renew and release, some under the lease's lock. A
// hook must not block, and must not call a method of the manager, a session or a lease.
type Trace struct {
	// Acquire is called when an acquisition begins, before its first request. It returns the
	// context of the acquisition's requests, which has to be made from ctx, and the hooks that
	// follow the acquisition.
	Acquire func(ctx context.Context, a Acquisition) (context.Context, AcquireTrace)
}

// Acquisition says what is to be acquired.
type Acquisition struct {
	Name    string     // of a session, the key of its record
	Kind    store.Kind // what the name is taken as; "" for a session
	Session bool       // a session's own record is made, not a lease
	Try     bool       // the caller doesn't wait
}

// AcquireTrace follows one acquisition. At its end either Begins is called or Fails, once.
type AcquireTrace struct {
	// TraceParent, if set, is stored in the record's Info as [store.InfoTraceParent]. The next term
	// finds it in [Beginning.Before]. A value of more than 128 bytes is not stored.
	TraceParent string

	Waits   func(*HeldError) // called together with [Options.OnWait]
	Retries func(error)      // called together with [Options.OnRetry]

	// Begins is called when the name is acquired, before the caller has the lease. It returns the
	// hooks of the term.
	Begins func(Beginning) TermTrace
	// Fails is called with the error that the acquisition returns.
	Fails func(error)
}

// Beginning says which term begins.
type Beginning struct {
	Token fence.Token
	// Before is the record that the acquisition replaced, as far as it is known. Its Info has the
	// trace parent of the term before, if that term had one.
	Before store.Record
}

// TermTrace follows one term.
type TermTrace struct {
	// Event is called with each event of the lease, in order, under the lease's lock. The first one
	// is held. The final one, lost or released, comes exactly once, also when the manager is
	// closed.
	Event func(Event)

	// Renewed is called when a renewal has been answered, or was given up. A lease that a session
	// keeps has none: the session's record is renewed.
	Renewed func(Renewal)

	// Leaves is called when a release begins, or a hand-over to the holder id to, after ctx of the
	// caller. It returns the context of the requests, made from ctx, and a function that is called
	// with what the release returns. Where that function is nil, it isn't called.
	Leaves func(ctx context.Context, to string) (context.Context, func(error))
}

// Renewal is one renewal of a term.
type Renewal struct {
	Took time.Duration // from the request to its outcome
	// The validity that was left at the outcome, before the renewal counted; 0 at least.
	Left time.Duration
	Err  error // nil for a renewal that counted
}

func (t *TermTrace) renewed(r Renewal) {
	if t != nil && t.Renewed != nil {
		t.Renewed(r)
	}
}

// leaves begins to trace a release. The function that it returns is never nil.
func (t *TermTrace) leaves(ctx context.Context, to string) (context.Context, func(error)) {
	if t == nil || t.Leaves == nil {
		return ctx, func(error) {}
	}
	ctx, done := t.Leaves(ctx, to)
	if done == nil {
		done = func(error) {}
	}
	return ctx, done
}
