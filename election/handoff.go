package election

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// Handover is an order to hand over, as it was given.
type Handover struct {
	From Leader // who is told to
	To   string // owner id of the successor; "" for whoever is next
	Done bool   // To leads already: there was nothing to order
}

// HandOver has whoever leads hand over to the candidate that is called to: by its name, its owner id, or the beginning of one up
// to a slash; or, when to is "", to whoever is next. A token other than 0 is of the term that is to end: no other is touched. It
// returns when the order is written, as [StepDown] does. Told again, it says that To leads, or writes nothing new.
//
// The error matches [ErrNoLeader]; [ErrNotElected] when who holds the name is no candidate, and wouldn't hear the order;
// [ErrNoCandidate]; or [fence.ErrStale] when the term of token is over. Then nothing was ordered.
func HandOver(ctx context.Context, st store.Store, name string, token fence.Token, to, by string) (Handover, error) {
	if len(by) > maxReason {
		return Handover{}, tooLong("by", by)
	}
	state, err := Read(ctx, st, name)
	if err != nil {
		return Handover{}, err
	}
	h := Handover{From: state.Leader}
	if to != "" && h.From.Owner != "" && state.called(to, h.From.Owner) {
		h.To, h.Done = h.From.Owner, true
		return h, nil
	}
	switch {
	case h.From.Owner == "" && state.Pause != nil:
		return h, fmt.Errorf("%s: %w: it is paused by %s: %s", name, ErrNoLeader, state.Pause.By, state.Pause.Reason)
	case h.From.Owner == "":
		return h, fmt.Errorf("%s: %w", name, ErrNoLeader)
	case token != 0 && token != h.From.Token:
		return h, &fence.StaleError{Name: name, Got: token, Current: h.From.Token, Holder: h.From.Owner}
	case !state.stands(h.From.Owner):
		return h, fmt.Errorf("%s: %w: %s", name, ErrNotElected, h.From.Owner)
	}
	if to != "" {
		if h.To, err = state.successor(ctx, st, name, to); err != nil {
			return h, err
		}
		if h.To == h.From.Owner { // another one of that name has died
			h.Done = true
			return h, nil
		}
	}
	return h, StepDown(ctx, st, name, h.From.Token, h.To, by)
}

// stands reports whether a candidate has that owner id.
func (s State) stands(owner string) bool {
	return slices.ContainsFunc(s.Candidates, func(c Candidate) bool { return c.Owner() == owner })
}

// called reports whether the candidate of that owner id is the only one that to can mean.
func (s State) called(to, owner string) bool {
	meant := s.meant(to)
	return len(meant) == 1 && meant[0].Owner() == owner
}

// meant returns the candidates that are called to.
func (s State) meant(to string) (all []Candidate) {
	for _, c := range s.Candidates {
		if c.Name == to || c.Owner() == to || strings.HasPrefix(c.Owner(), to+"/") {
			all = append(all, c)
		}
	}
	return all
}

// names lists the candidates' names, for people.
func (s State) names() string {
	all := make([]string, len(s.Candidates))
	for i, c := range s.Candidates {
		all[i] = fmt.Sprintf("%.60q", c.Name)
	}
	return strings.Join(all, ", ")
}

// successor returns the owner id of the one candidate that is called to, lives as far as its session's record says, and may lead.
func (s State) successor(ctx context.Context, st store.Store, name, to string) (string, error) {
	var found []Candidate
	for _, c := range s.meant(to) {
		rec, err := store.Load(ctx, st, c.Session)
		if err != nil {
			return "", err
		}
		if rec.Owner == c.Owner() && rec.Age < rec.TTL {
			found = append(found, c)
		}
	}
	var why error
	switch {
	case len(found) == 0:
		why = fmt.Errorf("nobody who lives stands by that name, but %s", s.names())
	case len(found) > 1:
		why = fmt.Errorf("%d are called so: give the holder's id of one", len(found))
	case found[0].Ineligible:
		why = errors.New("it is not eligible now")
	default:
		return found[0].Owner(), nil
	}
	return "", fmt.Errorf("%s: candidate %q: %w: %w", name, to, ErrNoCandidate, why)
}

func tooLong(field, value string) error {
	return &store.InvalidError{Field: field, Value: fmt.Sprintf("%.60q", value), Want: fmt.Sprintf("%d bytes at most", maxReason)}
}
