package lease

import (
	"context"
	"errors"
	"sync"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
)

// Where other programs share the records of a session's leases (client-go's elector, on
// Kubernetes), the session renews those for their eyes: up to drive.LookSingly of them, each from
// its first look on. These programs count the record's own TTL from the last such renewal, and not
// the session's; so a lease that was touched once is valid for no longer than the last touch
// allows, whatever its session does.

// touch renews those leases, all at a time, until then at the latest, and ends those that others
// have ended. It returns their errors. Like a renewal, a touch that has no answer is sent again.
// Once one copy is answered, the others come to their own ends: ctx is the session's.
func (k *looker) touch(ctx context.Context, until clock.Instant, leases []*Lease) error {
	var wg sync.WaitGroup
	errs := make([]error, len(leases)) // at most drive.LookSingly
	for i, l := range leases {
		rec := k.touched[l]
		wg.Go(func() { errs[i] = l.touch(ctx, until, rec) })
	}
	wg.Wait()
	for _, l := range leases {
		_ = l.Check() // a lease whose last touch is too long ago ends
	}
	return errors.Join(errs...)
}

// choose returns the leases to touch, and the others. With fresh it returns only those that were
// never touched.
func (k *looker) choose(leases []*Lease, fresh bool) (touch, others []*Lease) {
	members := make(map[*Lease]bool, len(k.touched))
	for _, l := range leases {
		_, known := k.touched[l]
		members[l] = known
		switch {
		case known && fresh:
		case known:
			touch = append(touch, l)
		case len(k.touched) < drive.LookSingly:
			k.touched[l] = &store.Record{}
			members[l] = true
			touch = append(touch, l)
		default:
			others = append(others, l)
		}
	}
	for l := range k.touched {
		if !members[l] {
			delete(k.touched, l)
		}
	}
	return touch, others
}

// earliest returns when the first of the touched leases ends unless it is touched again.
func (k *looker) earliest() clock.Instant {
	first := clock.NoDeadline
	for l := range k.touched {
		if d, ok := l.term.Limited(); ok {
			first = min(first, d)
		}
	}
	return first
}

// touch renews the record of a lease, which was last seen as rec, and extends the lease by that.
func (l *Lease) touch(ctx context.Context, until clock.Instant, rec *store.Record) error {
	m := l.m
	for {
		if rec.Version == "" {
			read := protocol.Action{Kind: protocol.Read, Key: l.key, Until: until}
			now, err := m.run.Request(ctx, read.Repeated(m.clk.Now(), m.timing.Attempt), nil)
			if err != nil || l.oust(now) {
				return l.troubled(err)
			}
			*rec = now
		}
		sent := m.clk.Now() // the first copy; whichever lands, the lease is extended from here
		limit, limited := l.term.Limited()
		if !limited { // from the first touch on, which may land however it is answered
			limit = sent.Add(m.timing.Validity())
			if !l.term.Limit(limit) {
				return nil // it is over
			}
		}
		touch := protocol.Action{Kind: protocol.Touch, Key: l.key, Rec: *rec, Nonce: drive.Nonce(), Until: min(limit, until)}
		now, err := m.run.Request(ctx, touch.Repeated(sent, m.timing.Attempt), nil)
		var conflict *store.ConflictError
		switch {
		case err == nil:
			*rec = now
			l.term.Limit(sent.Add(m.timing.Validity()))
			return l.troubled(nil)
		case errors.As(err, &conflict):
			*rec = conflict.Current
		case errors.Is(err, store.ErrNotFound):
			*rec = store.Record{Key: l.key}
		default:
			return l.troubled(err)
		}
		if l.oust(*rec) || ctx.Err() != nil {
			return nil
		}
	}
}

// oust ends the lease if rec is not its record any more, and reports whether it is over.
func (l *Lease) oust(rec store.Record) bool {
	cause, why := protocol.Ousted(rec, l.kept)
	if cause != protocol.NotLost {
		l.end(causeOf(cause), why)
	}
	return cause != protocol.NotLost
}

// troubled takes down why the lease could not be renewed, for when it ends, and returns that.
func (l *Lease) troubled(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.trouble = err
	return err
}
