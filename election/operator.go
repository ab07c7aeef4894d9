package election

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/ballot"
	"github.com/leasehold/leasehold/internal/keyspace"
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
	Leader Leader
	// The one that ends last; nil unless it is paused: one that is over by the time of day is none.
	Pause      *Pause
	Pauses     []Pause     // all of them, in the order in which they were set
	Candidates []Candidate // in the order in which they came; some may have died since
	// Since when there is none, and no pause, by the wall clock of the sweep that found so; else
	// zero.
	Unused time.Time
}

// Candidate is a candidate on the list of an election.
type Candidate struct {
	Session    string // key of the session that keeps it on the list
	Name       string
	Priority   int
	Zone       string
	Ineligible bool
	Since      time.Time // by its wall clock; for people
}

// Owner returns the candidate's owner id.
func (c Candidate) Owner() string { return keyspace.OwnerOf(c.Session) }

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
	rec, err := store.Load(ctx, st, ballot.Prefix+name)
	if err != nil {
		return State{}, err
	}
	b, err := ballot.StateOf(rec, clock.System().Wall())
	return stateOf(l, b), err
}

func stateOf(l Leader, b ballot.State) State {
	s := State{Leader: l, Pause: (*Pause)(b.Pause), Unused: b.Unused}
	for _, p := range b.Pauses {
		s.Pauses = append(s.Pauses, Pause(p))
	}
	for _, c := range b.Candidates {
		s.Candidates = append(s.Candidates, Candidate(c))
	}
	return s
}

// stepDown has the leader of the term under token step down. The leader stops, and then hands over
// the name to the candidate to, a name or an owner id, in one write. When to is "", it releases the
// name for the next candidate. stepDown returns when the order is written; [Watch] shows when it
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
	return ballot.Update(ctx, st, name, func(b *ballot.Ballot) (bool, error) {
		o := ballot.Order{Token: token, By: by}
		if to != "" {
			var err error
			if o.To, err = successor(*b, name, to); err != nil {
				return false, err
			}
		}
		if b.Order != nil && *b.Order == o {
			return false, nil
		}
		b.Order = &o
		return true, nil
	})
}

// successor returns the owner id of the candidate that is called to, by its name or its owner id.
// The error matches [ErrNoCandidate] when there is none that may lead.
func successor(b ballot.Ballot, name, to string) (owner string, err error) {
	i := slices.IndexFunc(b.Candidates, func(o ballot.Candidate) bool { return (o.Name == to || o.Owner() == to) && !o.Ineligible })
	if i < 0 {
		return "", fmt.Errorf("%s: candidate %q: %w", name, to, ErrNoCandidate)
	}
	return b.Candidates[i].Owner(), nil
}
