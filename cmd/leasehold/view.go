package main

import (
	"cmp"
	"context"
	"time"

	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/lessor"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// The states in which a name is shown.
const (
	stateFree       = api.StateFree
	stateHeld       = api.StateHeld
	stateExpired    = api.StateExpired
	stateBroken     = api.StateBroken
	stateHanded     = api.StateHanded
	stateUnreadable = api.StateBad
	stateDeclared   = api.StatePool

	statePaused = "paused" // in tables: an election in which nobody may lead, and nobody does
)

// states are those that an observer sees.
var states = map[lease.Standing]api.State{
	lease.NameFree: stateFree, lease.NameHeld: stateHeld, lease.NameExpired: stateExpired, lease.NameBroken: stateBroken, lease.NameHanded: stateHanded,
}

// view is a name as it is shown: in JSON a lease.
type view struct {
	api.Lease

	since     *time.Time // when it was acquired or freed, by the holder's wall clock
	expiresIn time.Duration
	silent    time.Duration // if that is out of the ordinary
	pause     string        // by whom the election is paused, and why, if nobody leads
}

// termView is a term of ownership as it is in JSON.
type termView = api.Term

// observer returns who says how names in st stand. It remembers what this command saw, and what others saw before.
func (a *app) observer(st store.Store) *lease.Observer {
	if a.observes == nil {
		a.book = a.sightings()
		a.observes = lease.NewObserver(st, lease.ObserverOptions{Clock: a.clk, Sightings: a.book})
	}
	return a.observes
}

// look returns the view of rec, which was read just now. It reads the record of the session that keeps rec, if one does.
func (a *app) look(ctx context.Context, st store.Store, rec store.Record) (view, error) {
	s, err := a.observer(st).Of(ctx, rec)
	if err != nil {
		return view{}, err
	}
	return newView(s), nil
}

func newView(s lease.Status) view {
	rec := s.Record
	v := view{silent: s.SilentFor(), Lease: api.Lease{
		Name: s.Name, State: states[s.Standing], Holder: s.Holder, Token: s.Token,
		Session: rec.Session, Note: s.Note, Info: lessor.Shown(rec.Info), Past: api.PastOf(rec),
	}}
	switch {
	case rec.Kind == store.KindPool:
		v.Kind, v.State, v.Holder = kindPool, stateDeclared, ""
		return v
	case s.Standing == lease.NameFree:
		if len(rec.Past) > 0 {
			v.since = &rec.Past[0].Until
		}
		return v
	case s.Standing != lease.NameExpired:
		v.expiresIn = s.ExpiresIn
		v.ExpiresIn = new(api.Seconds(s.ExpiresIn))
	}
	if v.silent > 0 {
		v.Silent = new(api.Seconds(v.silent))
	}
	v.TTL, v.Acquired, v.since = new(api.Seconds(s.TTL)), &s.Since, &s.Since
	return v
}

// shown is how it stands, for people.
func (v view) shown() string {
	if v.pause != "" {
		return statePaused
	}
	return string(v.State)
}

// remark is what is to be said about how it stands.
func (v view) remark() string { return cmp.Or(v.pause, v.Note) }

// ttl is how long the hold lasts past its last renewal; 0 if nobody holds it.
func (v view) ttl() time.Duration {
	if v.TTL == nil {
		return 0
	}
	return time.Duration(*v.TTL)
}

// terms returns the terms of a name, the present one first.
func (v view) terms() []termView {
	var all []termView
	if v.Holder != "" && v.State != stateHanded {
		all = append(all, termView{Holder: v.Holder, Token: v.Token, From: *v.Acquired})
	}
	all = append(all, v.Past...)
	for i := range all {
		all[i].Name = v.Name
	}
	return all
}

// changed reports whether v tells people anything that before didn't.
func (v view) changed(before view) bool {
	return v.shown() != before.shown() || v.Holder != before.Holder || v.Token != before.Token || v.remark() != before.remark() || v.holders() != before.holders()
}
