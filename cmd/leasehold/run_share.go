package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/supervise"
	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/rules"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/lock"
	"github.com/leasehold/leasehold/store"
)

// sharing is how a name is held: as a whole, or a share of it.
type sharing struct {
	shared     bool
	limit      int // slots; 0 for none
	limitGiven bool
	fair       bool
}

func (s *sharing) add(f *pflag.FlagSet) {
	f.BoolVar(&s.shared, "shared", false, "run beside others with --shared, but not beside one without")
	f.IntVar(&s.limit, "slots", 0, "let so many run at a time")
	f.BoolVar(&s.fair, "fair", false, "first come, first served; with --shared that is so anyway")
}

func (s sharing) check() error {
	switch {
	case s.shared && s.limitGiven:
		return usage("--shared and --slots exclude each other: --shared lets any number run beside each other, --slots that many")
	case s.limitGiven && (s.limit < 1 || s.limit > lock.MaxShares):
		return usage("--slots %d: want 1 to %d", s.limit, lock.MaxShares)
	}
	return nil
}

// fits explains that a name is used in another way already.
func (s sharing) fits(name string, declared lock.State) error {
	switch {
	case declared.Kind == lock.KindSemaphore && s.limit == 0:
		return usage("%s has %s: add --slots %d, or use another name", name, slotCount(declared.Limit), declared.Limit)
	case declared.Kind == lock.KindSemaphore && s.limit != declared.Limit:
		return usage("--slots %d: %s has %s, and all who use it have to say so: write --slots %d, or change it for all: leasehold slots %s %d",
			s.limit, name, slotCount(declared.Limit), declared.Limit, name, s.limit)
	case declared.Kind == lock.KindRW && s.limit > 0:
		return usage("--slots %d: %s is used with --shared: leave --slots out, or use another name", s.limit, name)
	case declared.Kind == lock.KindMutex && (s.shared || s.limit > 0):
		return usage("%s is held by one at a time, in order (--fair): for --shared or --slots use another name", name)
	}
	return nil
}

// hold is what CMD runs under: a lease, or a share of a lock.
type hold interface {
	supervise.Lease
	Token() fence.Token
	Sequencer() fence.Sequencer
	Release(ctx context.Context) error
}

// share is a share of a lock with a session of its own.
type share struct {
	*lock.Hold
	s *lease.Session
}

// Release gives the share back, and ends the session.
func (h *share) Release(ctx context.Context) error {
	return errors.Join(h.Hold.Release(ctx), closeSession(ctx, h.s))
}

// closeSession ends a session, and deletes its record if that is confirmed: its key is never used again.
func closeSession(ctx context.Context, s *lease.Session) error {
	if err := s.Close(ctx); err != nil {
		return err
	}
	forgetSession(ctx, s.Manager(), s.Key())
	return nil
}

// forgetSession deletes the record of a session, if it is closed. One that is left is of no use, and does no harm.
func forgetSession(ctx context.Context, m *lease.Manager, key string) {
	ctx, cancel := clock.WithTimeout(ctx, m.Clock(), m.TTL()/10)
	defer cancel()
	if rec, err := store.Load(ctx, m.Store(), key); err == nil && rec.Owner == "" && rec.Version != "" {
		_ = m.Store().Delete(ctx, rec.Key, rec.Version)
	}
}

// take takes the name in the way that was asked for, and waits for that unless it isn't to.
//
// Who wants a name as a whole takes its lease, and who wants a share takes one by the lock's roster. So that both keep each
// other out, the first of those who share makes the roster; whoever has the lease looks for one after that, and goes to the
// roster as well if there is one; and whoever has a share waits until the lease is free.
func (j *job) take(ctx context.Context) (hold, error) {
	for {
		declared, _ := j.declared(ctx) // what follows tells of a store that fails
		if err := j.opts.fits(j.name, declared); err != nil {
			return nil, err
		}
		if declared.Kind == "" {
			if err := j.mayDeclare(ctx); err != nil {
				return nil, err
			}
		}
		if j.opts.shared || j.opts.limit > 0 || j.opts.fair || declared.Kind == lock.KindRW {
			h, err := j.takeShare(ctx, declared.Kind)
			switch {
			case errors.Is(err, lock.ErrMismatch): // somebody else has declared it in the meantime
			case errors.Is(err, lease.ErrLost) && ctx.Err() == nil && !j.opts.noWait:
				j.words.say("waiting for %s again, at the end of the queue: the wait was cut short by an outage of the store", j.name)
			default:
				return h, err
			}
			continue
		}
		l, err := j.takeLease(ctx)
		if err != nil {
			return nil, err
		}
		if declared, err = j.confirm(ctx, l); err == nil && (declared.Kind == "" || declared.Kind == lock.KindMutex) {
			return l, nil
		}
		if err = errors.Join(err, j.release(l)); err != nil {
			return nil, err
		}
	}
}

// mayDeclare refuses what declarable does, for as long as the store fails, unless it isn't to wait.
func (j *job) mayDeclare(ctx context.Context) error {
	if !j.opts.shared && j.opts.limit == 0 {
		return nil
	}
	for {
		err := declarable(ctx, j.st, j.name, j.opts.limit)
		if exit := new(exitError); err == nil || errors.As(err, &exit) || j.opts.noWait {
			return err
		}
		j.words.retry(j.name, err)
		if clock.Sleep(ctx, j.a.clk, j.timing.TTL/30) != nil {
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// declarable refuses a roster, with slots if they are more than 0, that would keep those out who use the name already: once it is
// there, it says what the name is for good.
func declarable(ctx context.Context, st store.Store, name string, slots int) error {
	rec, err := store.Load(ctx, st, name)
	if err != nil {
		return err
	}
	state, err := election.Read(ctx, st, name)
	switch {
	case err != nil:
		return err
	case state.Pause != nil || len(state.Candidates) > 0:
		return usage("%s is an election (`leasehold candidates %s`): for --shared or --slots use another name", name, name)
	case slots > 0 && rec.Token != 0:
		return usage("--slots %d: %s has been held as a whole, by `leasehold run` without --slots: use another name", slots, name)
	}
	return nil
}

// declared returns the roster of the name, which is empty if it has none, or if the store has no room for one.
func (j *job) declared(ctx context.Context) (lock.State, error) {
	ctx, cancel := clock.WithTimeout(ctx, j.a.clk, j.timing.TTL/10)
	defer cancel()
	state, err := lock.Read(ctx, j.st, j.name)
	if errors.Is(err, store.ErrInvalid) {
		err = nil
	}
	return state, err
}

// confirm reads the roster for as long as the store fails, and the lease lasts.
func (j *job) confirm(ctx context.Context, l *lease.Lease) (lock.State, error) {
	ctx, cancel := until(ctx, l.Context())
	defer cancel()
	for {
		declared, err := j.declared(ctx)
		if err == nil || errors.Is(err, store.ErrCorrupt) {
			return declared, err
		}
		if clock.Sleep(ctx, j.a.clk, j.timing.TTL/30) != nil {
			return declared, errors.Join(context.Cause(ctx), err)
		}
	}
}

// until returns a context that ends with both, and with either's cause.
func until(ctx, also context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(also, func() { cancel(context.Cause(also)) })
	return ctx, func() { stop(); cancel(nil) }
}

func (j *job) takeLease(ctx context.Context) (*lease.Lease, error) {
	if j.opts.noWait {
		return j.m.TryAcquire(ctx, j.name)
	}
	return j.m.Acquire(ctx, j.name)
}

// takeShare takes a share of a lock that is, or is to be, of that kind.
func (j *job) takeShare(ctx context.Context, kind string) (hold, error) {
	s, err := j.openSession(ctx)
	if err != nil {
		return nil, err
	}
	h, err := j.shareOf(ctx, s, kind)
	if err == nil {
		return &share{h, s}, nil
	}
	closing, cancel := clock.WithTimeout(context.WithoutCancel(ctx), j.a.clk, j.timing.TTL/10)
	defer cancel()
	_ = closeSession(closing, s) // or it expires
	return nil, err
}

// openSession tries until the store answers, unless it isn't to wait.
func (j *job) openSession(ctx context.Context) (*lease.Session, error) {
	for {
		s, err := j.m.OpenSession(ctx)
		if err == nil || j.opts.noWait {
			return s, err
		}
		j.words.retry(j.name, err)
		if clock.Sleep(ctx, j.a.clk, j.timing.TTL/30) != nil {
			return nil, errors.Join(context.Cause(ctx), err)
		}
	}
}

type taking = func(context.Context) (*lock.Hold, error)

func (j *job) shareOf(ctx context.Context, s *lease.Session, kind string) (*lock.Hold, error) {
	take, try, err := j.opts.ways(s, j.name, kind)
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	h, err := try(ctx)
	if first := err; err != nil && !j.opts.noWait {
		j.words.waitForShare(err)
		if h, err = take(ctx); err != nil {
			err = errors.Join(err, first)
		}
	}
	if err != nil || j.opts.mutex(kind) { // which has the lease itself
		return h, err
	}
	if err := j.awaitLease(ctx, h); err != nil {
		return nil, errors.Join(err, h.Release(ctx))
	}
	return h, nil
}

// mutex reports whether a lock of that kind, which is to be made if it is "", is taken as a fair mutex.
func (s sharing) mutex(kind string) bool { return s.limit == 0 && !s.shared && kind != lock.KindRW }

// ways returns how to take a share, with and without waiting.
func (s sharing) ways(session *lease.Session, name, kind string) (take, try taking, err error) {
	switch {
	case s.limit > 0:
		sem, err := lock.NewSemaphore(session, name, lock.SemaphoreOptions{Limit: s.limit, Fair: s.fair})
		return func(ctx context.Context) (*lock.Hold, error) { return sem.Acquire(ctx, 1) },
			func(ctx context.Context) (*lock.Hold, error) { return sem.TryAcquire(ctx, 1) }, err
	case s.shared || kind == lock.KindRW:
		rw, err := lock.NewRWMutex(session, name)
		if err != nil || s.shared {
			return rw.RLock, rw.TryRLock, err
		}
		return rw.Lock, rw.TryLock, nil
	}
	m, err := lock.NewMutex(session, name, lock.MutexOptions{Fair: true})
	return m.Lock, m.TryLock, err
}

// awaitLease blocks until nobody has the lease of the name, which somebody may have taken before there was a roster.
func (j *job) awaitLease(ctx context.Context, h *lock.Hold) error {
	ctx, cancel := until(ctx, h.Context())
	defer cancel()
	var seen, session rules.Seen
	told := ""
	for {
		rec, err := store.Load(ctx, j.st, j.name)
		if err == nil && rec.Session != "" {
			session, err = j.noteSession(ctx, session, rec.Session)
		}
		if err == nil {
			now := j.a.clk.Now()
			seen = seen.Note(rec, now)
			v := newView(seen, session, now)
			if v.State == stateFree || v.State == stateExpired {
				return nil
			}
			held := &lease.HeldError{Key: j.name, Owner: rec.Owner, Since: rec.Acquired, Token: rec.Token, Note: rec.Note, ExpiresIn: v.expiresIn}
			if j.opts.noWait {
				return held
			}
			if told != rec.Owner {
				told = rec.Owner
				j.words.waitFor(held)
			}
			err = j.a.awaitChange(ctx, j.st, rec, v)
		}
		if err != nil && clock.Sleep(ctx, j.a.clk, j.timing.TTL/30) != nil {
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

// noteSession returns what is known of the session of that key after another look; before may be of another one.
func (j *job) noteSession(ctx context.Context, before rules.Seen, key string) (rules.Seen, error) {
	rec, err := store.Load(ctx, j.st, key)
	if err != nil {
		return before, err
	}
	if before.Rec.Key != key {
		before = rules.Seen{}
	}
	return before.Note(rec, j.a.clk.Now()), nil
}

// shareHeld says who holds a lock, and who waits before.
func shareHeld(e *lock.HeldError) string {
	who := "nobody"
	if n := len(e.Holders); n > 3 {
		who = fmt.Sprintf("%s and %d others", strings.Join(e.Holders[:3], ", "), n-3)
	} else if n > 0 {
		who = strings.Join(e.Holders, ", ")
	}
	if e.Waiting == 0 {
		return "held by " + who
	}
	return fmt.Sprintf("held by %s; %d waiting before", who, e.Waiting)
}
