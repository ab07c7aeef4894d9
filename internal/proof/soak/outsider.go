//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/lock"
	"github.com/leasehold/leasehold/store"
)

// meddle deletes the record of a hold, frees it, puts another holder into it, or the record of an
// earlier term in its place, as an outsider does with a tool of the store's.
func (t *tormentor) meddle(ctx context.Context, key string, how faultOf) {
	rec, err := store.Load(ctx, t.st, key)
	if err == nil && rec.Owner == "" {
		t.count(&t.meddled, false)
		return
	}
	m := meddling{name: key, from: t.clk.Now()}
	if err == nil {
		earlier := t.earlier(rec)
		switch {
		case how == faultDelete:
			err = t.st.Delete(ctx, key, rec.Version)
		case how == faultRestore && earlier.Token < rec.Token && earlier.Key != "":
			earlier.Version = rec.Version
			_, err = t.st.Put(ctx, earlier)
		case how == faultEdit:
			rec.Owner, rec.Session, rec.TTL, rec.Nonce = "somebody/else", "", t.TTL, "outsider"
			_, err = t.st.Put(ctx, rec)
		default:
			rec.Owner, rec.Session, rec.TTL, rec.Nonce = "", "", 0, "outsider"
			_, err = t.st.Put(ctx, rec)
		}
	}
	m.at = t.clk.Now()
	if err == nil || errors.Is(err, store.ErrUnknownOutcome) {
		t.hist.meddledWith(m)
	}
	if err != nil && (ctx.Err() != nil || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrUnknownOutcome) || t.hist.down(m.at)) {
		t.count(&t.meddled, false) // another write came first, nobody knows, or nobody serves
		return
	}
	t.count(&t.meddled, err == nil)
	t.wrong(err)
}

// earlier returns the last record of that name that an outsider has seen, and keeps this one for
// the next time, if no session keeps it: that of a session which lives would be held for as long as
// that does.
func (t *tormentor) earlier(rec store.Record) store.Record {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.seen[rec.Key]
	if rec.Session == "" && rec.Owner != "somebody/else" {
		t.seen[rec.Key] = rec
	}
	return before
}

// useOtherwise tries to take a name as a semaphore. If nobody has the name, that works, and what it
// holds is a section like others.
func (t *tormentor) useOtherwise(ctx context.Context, key string) {
	ctx, cancel := clock.WithTimeout(ctx, t.clk, t.TTL)
	defer cancel()
	got, err := t.asSemaphore(ctx, key)
	if ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, store.ErrUnknownOutcome) || errors.Is(err, lease.ErrLost) || err != nil && t.hist.down(t.clk.Now()) {
		t.count(&t.otherwise, false)
		return
	}
	if err == nil || errors.Is(err, lease.ErrHeld) || errors.Is(err, store.ErrKind) {
		t.count(&t.otherwise, true)
		if got {
			t.count(&t.got, true)
		}
		return
	}
	t.wrong(fmt.Errorf("use %s as a semaphore: %w", key, err))
}

func (t *tormentor) asSemaphore(ctx context.Context, key string) (got bool, err error) {
	m, err := lease.NewManager(t.st, lease.Options{TTL: t.TTL, Name: "outsider"})
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	s, err := m.OpenSession(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = s.Close(context.WithoutCancel(ctx)) }() // or its session expires
	sem, err := lock.NewSemaphore(s, key, lock.SemaphoreOptions{Limit: 1})
	if err != nil {
		return false, err
	}
	h, err := sem.TryAcquire(ctx, 1)
	if err != nil {
		return false, err
	}
	from := t.clk.Now()
	if h.Check() == nil {
		_ = clock.Sleep(ctx, t.clk, t.TTL/100) // ctx is looked at by the caller
		t.hist.add(section{outsider, key, h.Token(), from, t.clk.Now()})
	}
	return true, h.Release(ctx)
}
