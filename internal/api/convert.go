package api

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/leasehold/leasehold/identity"
	"github.com/leasehold/leasehold/internal/ballot"
	"github.com/leasehold/leasehold/internal/roster"
	"github.com/leasehold/leasehold/internal/turns"
	"github.com/leasehold/leasehold/store"
)

// The forms of what packages lock, election, identity and store say.

// ShareOf returns a share of a name whose roster is of, held or waiting by what the roster says.
func ShareOf(of roster.State, s roster.Share) Share {
	v := Share{Holder: s.Owner, State: ShareHeld, Token: s.Token, Since: s.Since, Session: s.Session}
	if s.Token == 0 {
		v.State = ShareWaiting
	}
	if of.Kind == roster.Semaphore && s.Weight > 1 {
		v.Weight = s.Weight
	}
	switch {
	case of.Kind == roster.RW && s.Weight == of.Limit:
		v.Mode = ModeWrite
	case of.Kind == roster.RW:
		v.Mode = ModeRead
	case of.Kind == roster.Semaphore && s.Token != 0:
		v.Slot = &s.Slot
	}
	return v
}

// AddElection adds what is known of the election of a name whose hold l already says.
func (l *Lease) AddElection(state ballot.State) {
	if p := state.Pause; p != nil {
		l.Paused = new(Pause(*p))
	}
	if len(state.Pauses) > 1 {
		for _, p := range state.Pauses {
			l.Pauses = append(l.Pauses, Pause(p))
		}
	}
	for _, c := range state.Candidates {
		v := Candidate{
			Name: c.Name, Holder: c.Owner(), Role: RoleCandidate, Priority: c.Priority, Zone: c.Zone, Ineligible: c.Ineligible, Since: c.Since,
		}
		switch {
		case v.Holder == l.Holder && l.State == StateHeld:
			v.Role = RoleLeader
		case v.Ineligible:
			v.Role = RoleIneligible
		}
		l.Candidates = append(l.Candidates, v)
	}
}

// PastOf returns the terms of a record that are over, newest first.
func PastOf(rec store.Record) []Term {
	var all []Term
	for _, t := range rec.Past {
		all = append(all, Term{Holder: t.Owner, Token: t.Token, From: t.From, Until: t.Until, Ended: t.Why})
	}
	return all
}

// turnOf returns a turn of the job whose hold l says.
func (l *Lease) turnOf(t turns.Turn) *Turn {
	v := &Turn{
		At: t.At.UTC().Format("2006-01-02 15:04"), Zone: cmp.Or(t.Zone, "UTC"), State: TurnLost, Code: t.Code, Holder: t.Holder, Token: t.Token,
		Begun: t.Begun, Ended: t.Ended, Next: t.Next,
	}
	if s := t.At.Second(); s != 0 {
		v.At += fmt.Sprintf(":%02d", s)
	}
	switch {
	case t.Code != nil && *t.Code == 0:
		v.State = TurnDone
	case t.Code != nil:
		v.State = TurnFailed
	case l.Token == t.Token && l.Holder == t.Holder && (l.State == StateHeld || l.State == StateBroken):
		v.State = TurnRunning
	}
	return v
}

// AddTurns adds what is known of the turns of a job whose hold l already says: all, newest first.
func (l *Lease) AddTurns(all []turns.Turn) {
	if len(all) == 0 {
		return
	}
	l.Turn, l.CompletedTurn = l.turnOf(all[0]), nil
	for _, t := range all {
		if t.Code == nil {
			continue
		}
		if t.Token != all[0].Token {
			l.CompletedTurn = l.turnOf(t)
		}
		return
	}
}

// TurnsOf returns the turns of a job whose hold l says.
func (l *Lease) TurnsOf(all []turns.Turn) []Turn {
	var views []Turn
	for _, t := range all {
		views = append(views, *l.turnOf(t))
	}
	return views
}

// WithTurns returns the terms of a job whose hold l says, newest first, with the turns in which its
// command was begun. A turn whose term isn't kept is a term, too.
func (l *Lease) WithTurns(terms []Term, all []turns.Turn) []Term {
	terms = slices.Clone(terms)
	for _, t := range all {
		v := l.turnOf(t)
		if i := slices.IndexFunc(terms, func(term Term) bool { return term.Token == t.Token && term.Holder == t.Holder }); i >= 0 {
			terms[i].Turn = v
			continue
		}
		term := Term{Holder: t.Holder, Token: t.Token, From: t.Begun, Until: t.Ended, Turn: v}
		if v.State == TurnLost {
			term.Until, term.Ended = t.Begun, "its end is not known"
		}
		terms = append(terms, term)
	}
	slices.SortStableFunc(terms, func(a, b Term) int { return cmp.Compare(b.Token, a.Token) })
	return terms
}

// IdentityOf returns a value of a pool that somebody has. The caller adds how it stands and for how
// long, and its info.
func IdentityOf(pool string, e identity.Entry) Identity {
	rec := e.Record
	id := Identity{
		Pool: pool, Value: e.Value, Number: e.Number, As: e.Name, State: StateHeld, Kept: KeptRunning, Holder: rec.Owner, Token: rec.Token,
		Acquired: rec.Acquired, Session: rec.Session,
	}
	if e.Assigned {
		id.Kept = KeptAssigned
	}
	if !e.Ceiling.IsZero() {
		id.Floor, id.Ceiling = &e.Floor, &e.Ceiling
	}
	return id
}

// PoolOf returns a pool.
func PoolOf(p identity.Declared) DeclaredPool {
	v := p.Values
	return DeclaredPool{Pool: p.Pool, Range: v.Range, Names: v.Names, Prefix: v.Prefix, Bits: v.Bits, Size: p.Size, Layout: p.Layout}
}
