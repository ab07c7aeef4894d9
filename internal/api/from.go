package api

import (
	"github.com/leasehold/leasehold/identity"
	"github.com/leasehold/leasehold/internal/ballot"
	"github.com/leasehold/leasehold/internal/roster"
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
