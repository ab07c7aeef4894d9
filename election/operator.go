package election

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// The errors of an operator's calls, to branch on with [errors.Is].
var (
	ErrNoLeader    = errors.New("nobody leads")
	ErrNotElected  = errors.New("it is held by no candidate, who would not hear an order")
	ErrNoCandidate = errors.New("no such candidate, or it is not eligible now")
)

// State is the content of an election's records.
type State struct {
	Leader     Leader
	Pause      *Pause      // the one that ends last; nil unless it is paused: one that is over by the time of day is none
	Pauses     []Pause     // all of them, in the order in which they were set
	Candidates []Candidate // in the order in which they came; some may have died since
	Unused     time.Time   // since when there is none, and no pause, by the wall clock of the [Prune] that found so; else zero
}

// StateOf returns the state of an election at a time of day, from a record whose key begins with
// .election/. It has all but the leader, which the record of the name itself has. A record that
// isn't stored gives an empty state. The error matches [store.ErrCorrupt] when the record can't be
// read.
func StateOf(rec store.Record, now time.Time) (State, error) {
	k, err := readControl(rec)
	pauses := slices.DeleteFunc(k.pauses(), func(p Pause) bool { return p.Over(now) })
	return State{Pause: lastToEnd(pauses), Pauses: pauses, Candidates: k.Candidates, Unused: k.Unused}, err
}

// ReadState returns the state of an election, by this machine's time of day. It blocks until the
// store has answered or ctx is done.
func ReadState(ctx context.Context, st store.Store, name string) (State, error) {
	if err := checkName(name); err != nil {
		return State{}, err
	}
	l, err := Current(ctx, st, name)
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

// StepDown has the leader of the term under token step down. The leader stops, and then hands over
// the name to the candidate to, a name or an owner id, in one write. When to is "", it releases the
// name for the next candidate. StepDown returns when the order is written; [Watch] shows when it
// is carried out. If the term ends by itself meanwhile, the order ends with it.
func stepDown(ctx context.Context, st store.Store, name string, token fence.Token, to, by string) error {
	state, err := ReadState(ctx, st, name)
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
