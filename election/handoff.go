package election

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/ballot"
	"github.com/leasehold/leasehold/store"
)

// Handover is an order to hand over, as it was given.
type Handover struct {
	From         Leader // the leader that gets the order
	To           string // owner id of the successor; "" for the next candidate in order
	AlreadyLeads bool   // To leads already: there was nothing to order
}

// HandOverOptions say which term ends, and who is next.
type HandOverOptions struct {
	// Token names the term that is to end; no other term is affected. 0 is the current term.
	Token fence.Token
	// To is the successor: its name, its owner id, or the beginning of one up to a slash. "" is the
	// next candidate in order.
	To string
	// By says who orders it and why, for people.
	By string
}

// HandOver has the leader of an election stop, and then hand the name to the successor in one
// write. Where no successor is named, the leader releases the name. Without a token, HandOver
// restarts when the term ends before the order is written.
//
// It returns when the order is written; [Watch] shows when the leader carries it out. A term that
// ends by itself meanwhile ends the order, too. Called again, HandOver reports that the successor
// leads, or writes nothing new.
//
// The error matches:
//
//   - [ErrNoLeader] when nobody leads;
//   - [ErrNotElected] when the holder of the name is not a candidate, and would not see the order;
//   - [ErrNoCandidate] when there is no such candidate;
//   - [fence.ErrStale] when the term of the token is over.
//
// Then nothing was ordered.
func HandOver(ctx context.Context, st store.Store, name string, o HandOverOptions) (Handover, error) {
	if len(o.By) > maxReason {
		return Handover{}, tooLong("by", o.By)
	}
	for {
		h, err := handOver(ctx, st, name, o)
		if o.Token != 0 || !errors.Is(err, fence.ErrStale) || ctx.Err() != nil {
			return h, err
		}
	}
}

func handOver(ctx context.Context, st store.Store, name string, o HandOverOptions) (Handover, error) {
	state, err := ReadState(ctx, st, name)
	if err != nil {
		return Handover{}, err
	}
	h := Handover{From: state.Leader}
	if o.To != "" && h.From.Owner != "" && state.called(o.To, h.From.Owner) {
		h.To, h.AlreadyLeads = h.From.Owner, true
		return h, nil
	}
	switch {
	case h.From.Owner == "" && state.Pause != nil:
		return h, fmt.Errorf("%s: %w: it is paused by %s", name, ErrNoLeader, *state.Pause)
	case h.From.Owner == "":
		return h, fmt.Errorf("%s: %w", name, ErrNoLeader)
	case o.Token != 0 && o.Token != h.From.Token:
		return h, &fence.StaleError{Name: name, Got: o.Token, Current: h.From.Token, Holder: h.From.Owner}
	case !state.stands(h.From.Owner):
		return h, fmt.Errorf("%s: %w: %s", name, ErrNotElected, h.From.Owner)
	}
	if o.To != "" {
		if h.To, err = state.successor(ctx, st, name, o.To); err != nil {
			return h, err
		}
		if h.To == h.From.Owner { // another one of that name has died
			h.AlreadyLeads = true
			return h, nil
		}
	}
	return h, stepDown(ctx, st, name, h.From.Token, h.To, o.By)
}

// stands reports whether a candidate has that owner id. On a list that is full, one may be missing
// that leads.
func (s State) stands(owner string) bool {
	return len(s.Candidates) >= ballot.MaxCandidates || slices.ContainsFunc(s.Candidates, func(c Candidate) bool { return c.Owner() == owner })
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

// list lists candidates for people, by their names or ids.
func list(candidates []Candidate, called func(Candidate) string) string {
	all := make([]string, len(candidates))
	for i, c := range candidates {
		all[i] = fmt.Sprintf("%.60q", called(c))
	}
	return strings.Join(all, ", ")
}

// successor returns the owner id of the one candidate that is called to, lives as far as its
// session's record says, and may lead.
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
	switch {
	case len(found) == 0:
		return "", noCandidate("%s: nobody who lives stands as %q, but %s", name, to, list(s.Candidates, func(c Candidate) string { return c.Name }))
	case len(found) > 1:
		return "", noCandidate("%s: %d candidates are called %q: give the holder's id of one: %s", name, len(found), to, list(found, Candidate.Owner))
	case found[0].Ineligible:
		return "", noCandidate("%s: candidate %q is not eligible now", name, to)
	}
	return found[0].Owner(), nil
}

// noCandidateError is an [ErrNoCandidate] that says which of its reasons it is.
type noCandidateError string

func noCandidate(format string, args ...any) error {
	return noCandidateError(fmt.Sprintf(format, args...))
}

func (e noCandidateError) Error() string { return string(e) }

func (noCandidateError) Unwrap() error { return ErrNoCandidate }

func tooLong(field, value string) error {
	return &store.InvalidError{Field: field, Value: fmt.Sprintf("%.60q", value), Want: fmt.Sprintf("%d bytes at most", maxReason)}
}
