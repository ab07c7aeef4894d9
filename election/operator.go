package election

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// The errors of an operator's calls, to branch on with [errors.Is].
var (
	ErrNotPaused   = errors.New("the election is not paused")
	ErrNoLeader    = errors.New("nobody leads")
	ErrNotElected  = errors.New("it is held by no candidate, who would not hear an order")
	ErrNoCandidate = errors.New("no such candidate, or it is not eligible now")
)

// KeyPrefix begins the keys of the records of elections; the name follows.
const KeyPrefix = prefix

// State is what an election's records say.
type State struct {
	Leader     Leader
	Pause      *Pause      // nil unless it is paused: one that is over by the time of day is none
	Candidates []Candidate // in the order in which they came; some may have died since
	Unused     time.Time   // since when there is none, and no pause, by the wall clock of the [Prune] that found so; else zero
}

// StateOf returns what a record whose key begins with [KeyPrefix] says of its election at a time of day: all but who leads, which the
// record of the name itself says. A record that isn't stored says nothing. The error matches [store.ErrCorrupt] when it can't be read.
func StateOf(rec store.Record, now time.Time) (State, error) {
	k, err := readControl(rec)
	if k.Pause != nil && k.Pause.Over(now) {
		k.Pause = nil
	}
	return State{Pause: k.Pause, Candidates: k.Candidates, Unused: k.Unused}, err
}

// Read returns the state of an election, by this machine's time of day. It blocks until the store has answered or ctx is done.
func Read(ctx context.Context, st store.Store, name string) (State, error) {
	if err := checkName(name); err != nil {
		return State{}, err
	}
	l, err := Now(ctx, st, name)
	if err != nil {
		return State{}, err
	}
	rec, err := store.Load(ctx, st, prefix+name)
	if err != nil {
		return State{}, err
	}
	state, err := StateOf(rec, clock.System().Wall())
	state.Leader = l
	return state, err
}

// SetPause has nobody lead until [Resume], or until the pause ends by itself: the leader steps down when it hears of it, at the latest
// when its validity ends, and no candidate campaigns. p needs who pauses it, and since when, which is the time of day. A pause on a
// pause replaces it, unless neither has an end and both are by the same one for the same reason: then the first stands, so that it can
// be asked for again. It blocks until the store has answered or ctx is done. After an error that matches [store.ErrUnknownOutcome] it
// may be paused, and can be asked for again.
func SetPause(ctx context.Context, st store.Store, name string, p Pause) error {
	if err := checkName(name); err != nil {
		return err
	}
	p.Since, p.Until = p.Since.UTC().Round(0), p.Until.UTC().Round(0)
	if err := p.check(); err != nil {
		return err
	}
	return change(ctx, st, name, func(k *control) (bool, error) {
		if k.Pause != nil {
			again := k.Pause.By == p.By && k.Pause.Reason == p.Reason && k.Pause.Until.IsZero() && p.Until.IsZero()
			if again || k.Pause.equal(p) {
				return false, nil
			}
		}
		k.Pause = &p
		return true, nil
	})
}

// Resume ends a pause, and forgets one that has ended by itself. The error matches [ErrNotPaused] when there is none.
func Resume(ctx context.Context, st store.Store, name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	wrote := false
	return change(ctx, st, name, func(k *control) (bool, error) {
		if k.Pause == nil && !wrote {
			return false, fmt.Errorf("%s: %w", name, ErrNotPaused)
		}
		write := k.Pause != nil
		k.Pause, wrote = nil, true
		return write, nil
	})
}

// StepDown has the leader of the term under token step down: it stops, and then hands the name over to the candidate to, known by
// its name or owner id, in one write; or, when to is "", releases it for whoever is next. It returns when the order is written;
// [Observe] shows when it is carried out. A term that ends by itself meanwhile takes the order with it.
func StepDown(ctx context.Context, st store.Store, name string, token fence.Token, to, by string) error {
	state, err := Read(ctx, st, name)
	if err != nil {
		return err
	}
	switch {
	case state.Leader.Owner == "":
		return fmt.Errorf("%s: %w", name, ErrNoLeader)
	case state.Leader.Token != token:
		return &fence.StaleError{Name: name, Got: token, Current: state.Leader.Token, Holder: state.Leader.Owner}
	}
	return change(ctx, st, name, func(k *control) (bool, error) {
		o := order{Token: token, By: by}
		if to != "" {
			var err error
			if o.To, err = k.successor(name, to); err != nil {
				return false, err
			}
		}
		if k.Order != nil && *k.Order == o {
			return false, nil
		}
		k.Order = &o
		return true, nil
	})
}
