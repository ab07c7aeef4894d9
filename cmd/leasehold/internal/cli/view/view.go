// Package view is how a name is looked at: who holds it, who waits, and how that is shown.
package view

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/lessor"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/lease/sightings"
	"github.com/leasehold/leasehold/store"
)

// The states in which a name is shown.
const (
	StateFree       = string(lease.NameFree)
	StateHeld       = string(lease.NameHeld)
	StateExpired    = string(lease.NameExpired)
	stateBroken     = string(lease.NameBroken)
	stateHanded     = string(lease.NameHanded)
	StateUnreadable = "unreadable" // its record can't be read
	StatePaused     = "paused"     // an election in which nobody may lead, and nobody does
	stateDeclared   = "declared"   // a pool of identities, whose name nobody can hold
)

// View is a name as it is shown, and as it is in JSON. Fields are only ever added.
type View struct {
	Name    string            `json:"name"`
	State   string            `json:"state"`
	Holder  string            `json:"holder,omitempty"`
	Token   fence.Token       `json:"token"`
	Since   *time.Time        `json:"since,omitempty"`              // acquired, or freed; by the holder's wall clock
	TTL     float64           `json:"ttl_seconds,omitempty"`        // how long it lasts past its last renewal
	Expires *float64          `json:"expires_in_seconds,omitempty"` // at most, unless it is renewed
	Silent  *float64          `json:"silent_seconds,omitempty"`     // since when at least there is no sign of life
	Session string            `json:"session,omitempty"`
	Note    string            `json:"note,omitempty"` // who broke it or handed it over, and why
	Info    map[string]string `json:"info,omitempty"`
	Past    []Term            `json:"past,omitempty"`

	Kind       string      `json:"kind,omitempty"`    // rw, semaphore, fair, election or pool
	Limit      int         `json:"limit,omitempty"`   // slots of a semaphore
	Holders    []Share     `json:"holders,omitempty"` // of shares
	Waiting    []Share     `json:"waiting,omitempty"` // in the order in which they are served
	Pause      *Pause      `json:"pause,omitempty"`
	Pauses     []Pause     `json:"pauses,omitempty"` // all, if there are several
	Candidates []Candidate `json:"candidates,omitempty"`

	ExpiresIn time.Duration `json:"-"`
	SilentFor time.Duration `json:"-"` // if that is out of the ordinary
}

// Term is a term of ownership as it is in JSON.
type Term struct {
	Name   string      `json:"name,omitempty"`
	Holder string      `json:"holder"`
	Token  fence.Token `json:"token"`
	From   time.Time   `json:"from"`
	Until  *time.Time  `json:"until,omitempty"` // missing in the present term
	Why    string      `json:"why,omitempty"`   // why it ended
}

// Viewer is a call of the program that looks at names.
type Viewer struct {
	*cli.App
	observes *lease.Observer // made when it is first needed
	book     *sightings.Book // what it saw, and others before
}

// New returns the viewer of a call of the program.
func New(a *cli.App) *Viewer { return &Viewer{App: a} }

// Observer returns who says how names in st stand. It remembers what this command saw, and what others saw before.
func (a *Viewer) Observer(st store.Store) *lease.Observer {
	if a.observes == nil {
		a.book = a.Sightings()
		a.observes = lease.NewObserver(st, lease.ObserverOptions{Clock: a.Clock, Sightings: a.book})
	}
	return a.observes
}

// Look returns the view of rec, which was read just now. It reads the record of the session that keeps rec, if one does.
func (a *Viewer) Look(ctx context.Context, st store.Store, rec store.Record) (View, error) {
	s, err := a.Observer(st).Of(ctx, rec)
	if err != nil {
		return View{}, err
	}
	return newView(s), nil
}

func newView(s lease.Status) View {
	rec := s.Record
	v := View{
		Name: s.Name, State: string(s.Standing), Holder: s.Holder, Token: s.Token, TTL: s.TTL.Seconds(),
		Session: rec.Session, Note: s.Note, Info: lessor.Shown(rec.Info), SilentFor: s.SilentFor(),
	}
	for _, t := range rec.Past {
		v.Past = append(v.Past, Term{Holder: t.Owner, Token: t.Token, From: t.From, Until: &t.Until, Why: t.Why})
	}
	switch {
	case rec.Kind == store.KindPool:
		v.Kind, v.State, v.Holder, v.TTL = kindPool, stateDeclared, "", 0
		return v
	case s.Standing == lease.NameFree:
		if len(rec.Past) > 0 {
			v.Since = &rec.Past[0].Until
		}
		return v
	case s.Standing != lease.NameExpired:
		v.ExpiresIn = s.ExpiresIn
		left := s.ExpiresIn.Round(time.Millisecond).Seconds()
		v.Expires = &left
	}
	if s.Silent > 0 {
		silent := s.Silent.Round(time.Millisecond).Seconds()
		v.Silent = &silent
	}
	v.Since = &s.Since
	return v
}

// Terms returns the terms of a name, the present one first.
func (v View) Terms() []Term {
	var all []Term
	if v.Holder != "" && v.State != stateHanded {
		all = append(all, Term{Holder: v.Holder, Token: v.Token, From: *v.Since})
	}
	all = append(all, v.Past...)
	for i := range all {
		all[i].Name = v.Name
	}
	return all
}

// Changed reports whether v tells people anything that before didn't.
func (v View) Changed(before View) bool {
	return v.State != before.State || v.Holder != before.Holder || v.Token != before.Token || v.Note != before.Note || v.HeldBy() != before.HeldBy()
}

// Under reports whether it, or a share of it, is held under that token.
func (v View) Under(token fence.Token) bool {
	return v.State == StateHeld && v.Holders == nil && v.Token == token || v.ShareUnder(token).held()
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

// held reports whether there is a share, and it is held.
func (s *Share) held() bool { return s != nil && s.State == StateHeld }

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

// KeepBook keeps what a command that only looks has seen. Where that can't be kept, the next look begins again: no reason to fail.
func (a *Viewer) KeepBook() { _ = a.book.Save() }

// stateColours are SGR codes.
var stateColours = map[string]string{StateHeld: "32", StateExpired: "33", stateBroken: "31", stateHanded: "36", StatePaused: "33", StateFree: "2"}

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
	if v.Pause != nil && len(v.Pauses) == 0 {
		return []Pause{*v.Pause}
	}
	return v.Pauses
}
