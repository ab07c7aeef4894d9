// Package view is how a name is looked at: who holds it, who waits, and how that is shown.
package view

import (
	"cmp"
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/lessor"
	"github.com/leasehold/leasehold/internal/turns"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/lease/sightings"
	"github.com/leasehold/leasehold/store"
)

// The states in which a name is shown.
const (
	StateFree       = api.StateFree
	StateHeld       = api.StateHeld
	StateExpired    = api.StateExpired
	stateBroken     = api.StateBroken
	stateHanded     = api.StateHanded
	StateUnreadable = api.StateBad
	stateDeclared   = api.StatePool

	StatePaused = "paused" // in tables: an election in which nobody may lead, and nobody does
)

// states are those that an observer sees.
var states = map[lease.Standing]api.State{
	lease.NameFree: StateFree, lease.NameHeld: StateHeld, lease.NameExpired: StateExpired, lease.NameBroken: stateBroken, lease.NameHanded: stateHanded,
}

// View is a name as it is shown: in JSON a lease.
type View struct {
	api.Lease

	Since     *time.Time    `json:"-"` // when it was acquired or freed, by the holder's wall clock
	LeftFor   time.Duration `json:"-"` // how long the hold lasts at most, unless it is renewed
	SilentFor time.Duration `json:"-"` // if that is out of the ordinary
	PausedBy  string        `json:"-"` // by whom the election is paused, and why, if nobody leads

	turns []turns.Turn // of a job, newest first
}

// Term is a term of ownership as it is in JSON.
type Term = api.Term

// Viewer is a call of the program that looks at names.
type Viewer struct {
	*cli.App
	observes *lease.Observer // made when it is first needed
	book     *sightings.Book // what it saw, and others before
}

// New returns the viewer of a call of the program.
func New(a *cli.App) *Viewer { return &Viewer{App: a} }

// Observer returns who says how names in st stand. It remembers what this command saw, and what
// others saw before.
func (a *Viewer) Observer(st store.Store) *lease.Observer {
	if a.observes == nil {
		a.book = a.Sightings()
		a.observes = lease.NewObserver(st, lease.ObserverOptions{Clock: a.Clock, Sightings: a.book})
	}
	return a.observes
}

// Look returns the view of rec, which was read just now. It reads the record of the session that
// keeps rec, if one does.
func (a *Viewer) Look(ctx context.Context, st store.Store, rec store.Record) (View, error) {
	s, err := a.Observer(st).Of(ctx, rec)
	if err != nil {
		return View{}, err
	}
	return newView(s), nil
}

func newView(s lease.Status) View {
	rec := s.Record
	v := View{SilentFor: s.SilentFor(), Lease: api.Lease{
		Name: s.Name, State: states[s.Standing], Holder: s.Holder, Token: s.Token,
		Session: rec.Session, Note: s.Note, Info: lessor.Shown(rec.Info), Past: api.PastOf(rec),
	}}
	switch {
	case rec.Kind == store.KindPool:
		v.Kind, v.State, v.Holder = kindPool, stateDeclared, ""
		return v
	case s.Standing == lease.NameFree:
		if len(rec.Past) > 0 {
			v.Since = &rec.Past[0].Until
		}
		return v
	case s.Standing != lease.NameExpired:
		v.LeftFor = s.ExpiresIn
		v.ExpiresIn = new(api.Seconds(s.ExpiresIn))
	}
	if v.SilentFor > 0 {
		v.Silent = new(api.Seconds(v.SilentFor))
	}
	v.TTL, v.Acquired, v.Since = new(api.Seconds(s.TTL)), &s.Since, &s.Since
	return v
}

// Shown is how it stands, for people.
func (v View) Shown() string {
	if v.PausedBy != "" {
		return StatePaused
	}
	return string(v.State)
}

// Remark is what is to be said about how it stands.
func (v View) Remark() string { return cmp.Or(v.PausedBy, v.Note) }

// HoldTTL is how long the hold lasts past its last renewal; 0 if nobody holds it.
func (v View) HoldTTL() time.Duration {
	if v.TTL == nil {
		return 0
	}
	return time.Duration(*v.TTL)
}

// Terms returns the terms of a name, the present one first.
func (v View) Terms() []Term {
	var all []Term
	if v.Holder != "" && v.State != stateHanded {
		all = append(all, Term{Holder: v.Holder, Token: v.Token, From: *v.Acquired})
	}
	all = v.WithTurns(append(all, v.Past...), v.turns)
	for i := range all {
		all[i].Name = v.Name
	}
	return all
}

// Changed reports whether v tells people anything that before didn't.
func (v View) Changed(before View) bool {
	return v.Shown() != before.Shown() || v.Holder != before.Holder || v.Token != before.Token || v.Remark() != before.Remark() || v.HeldBy() != before.HeldBy() ||
		TurnText(v.Turn) != TurnText(before.Turn)
}

// Under reports whether it, or a share of it, is held under that token.
func (v View) Under(token fence.Token) bool {
	return v.State == StateHeld && v.Holders == nil && v.Token == token || Held(v.ShareUnder(token))
}

// ShareUnder returns the share with that token, or nil.
func (v View) ShareUnder(token fence.Token) *Share {
	for i, h := range v.Holders {
		if h.Token == token {
			return &v.Holders[i]
		}
	}
	return nil
}

// Held reports whether there is a share, and it is held.
func Held(s *Share) bool { return s != nil && s.State == api.ShareHeld }

// Elected returns the view of a name, with its election.
func (a *Viewer) Elected(ctx context.Context, st store.Store, name string) (View, error) {
	rec, err := store.Load(ctx, st, name)
	if err != nil {
		return View{}, err
	}
	return a.Full(ctx, st, rec)
}

// InfoLine is the info of a hold on one line.
func (v View) InfoLine() string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(v.Info)) {
		parts = append(parts, output.Plain(k)+"="+output.Plain(v.Info[k]))
	}
	return strings.Join(parts, " ")
}

// KeepBook keeps what a command that only looks has seen. Where that can't be kept, the next look
// begins again: no reason to fail.
func (a *Viewer) KeepBook() { _ = a.book.Save() }

// stateColours are SGR codes.
var stateColours = map[string]string{
	string(StateHeld): "32", string(StateExpired): "33", string(stateBroken): "31", string(stateHanded): "36", StatePaused: "33", string(StateFree): "2",
}

// Painter colours states, if out is to have colours.
func Painter(out *os.File) func(title, cell, padded string) string {
	if !output.Coloured(out) {
		return nil
	}
	return func(title, cell, padded string) string {
		if code := stateColours[cell]; title == "STATE" && code != "" {
			return "\x1b[" + code + "m" + cell + "\x1b[0m" + padded[len(cell):]
		}
		return padded
	}
}

// AllPauses returns all there are.
func (v View) AllPauses() []Pause {
	if v.Paused != nil && len(v.Pauses) == 0 {
		return []Pause{*v.Paused}
	}
	return v.Pauses
}

// Verdict writes whether a term is current, of a name that is as v says, and returns nil if it is;
// else it says why not, and returns exit code 1.
func (a *Viewer) Verdict(d api.Verification, v View, why string) error {
	if !d.Current {
		d.Now = &v.Lease
	}
	if a.Output() != output.Table {
		if err := output.WriteJSON(a.Out, d, a.Output() == output.Lines); err != nil {
			return err
		}
	}
	if d.Current {
		return nil
	}
	a.Say("%s", why)
	return cli.Exit(cli.ExitNo, nil)
}
