package main

import (
	"context"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/grants"
	"github.com/leasehold/leasehold/internal/rules"
	"github.com/leasehold/leasehold/store"
)

// The states in which a name is shown.
const (
	stateFree       = "free"
	stateHeld       = "held"
	stateExpired    = "expired"    // its holder is gone, and anyone may take it
	stateBroken     = "broken"     // an operator has ended the hold; its holder hasn't let go yet
	stateHanded     = "handed"     // to a successor whose term has not begun yet
	stateUnreadable = "unreadable" // its record can't be read
	statePaused     = "paused"     // an election in which nobody may lead, and nobody does
	stateDeclared   = "declared"   // a pool of identities, whose name nobody can hold
)

// view is a name as it is shown, and as it is in JSON. Fields are only ever added.
type view struct {
	Name    string            `json:"name"`
	State   string            `json:"state"`
	Holder  string            `json:"holder,omitempty"`
	Token   fence.Token       `json:"token"`
	Since   *time.Time        `json:"since,omitempty"`              // acquired, or freed; by the holder's wall clock
	TTL     float64           `json:"ttl_seconds,omitempty"`        // how long it lasts past its last renewal
	Expires *float64          `json:"expires_in_seconds,omitempty"` // at most, unless it is renewed
	Session string            `json:"session,omitempty"`
	Note    string            `json:"note,omitempty"` // who broke it or handed it over, and why
	Info    map[string]string `json:"info,omitempty"`
	Past    []termView        `json:"past,omitempty"`

	Kind       string          `json:"kind,omitempty"`    // rw, semaphore, fair, election or pool
	Limit      int             `json:"limit,omitempty"`   // slots of a semaphore
	Holders    []shareView     `json:"holders,omitempty"` // of shares
	Waiting    []shareView     `json:"waiting,omitempty"` // in the order in which they are served
	Pause      *pauseView      `json:"pause,omitempty"`
	Candidates []candidateView `json:"candidates,omitempty"`

	expiresIn time.Duration
}

// termView is a term of ownership as it is in JSON.
type termView struct {
	Name   string      `json:"name,omitempty"`
	Holder string      `json:"holder"`
	Token  fence.Token `json:"token"`
	From   time.Time   `json:"from"`
	Until  *time.Time  `json:"until,omitempty"` // missing in the present term
	Why    string      `json:"why,omitempty"`   // why it ended
}

// look returns the view of rec, which was read just now. It reads the record of the session that keeps rec, if one does.
func (a *app) look(ctx context.Context, st store.Store, rec store.Record) (view, error) {
	now := a.clk.Now()
	seen, session := rules.Seen{}.Note(rec, now), rules.Seen{}
	if rec.Session != "" {
		s, err := store.Load(ctx, st, rec.Session)
		if err != nil {
			return view{}, err
		}
		session = session.Note(s, a.clk.Now())
	}
	return newView(seen, session, now), nil
}

func newView(seen, session rules.Seen, now clock.Instant) view {
	rec := seen.Rec
	v := view{
		Name: rec.Key, State: stateHeld, Holder: rec.Owner, Token: rec.Token, TTL: rec.TTL.Seconds(),
		Session: rec.Session, Note: rec.Note, Info: grants.Shown(rec.Info),
	}
	for _, t := range rec.Past {
		v.Past = append(v.Past, termView{Holder: t.Owner, Token: t.Token, From: t.From, Until: &t.Until, Why: t.Why})
	}
	if rec.Kind == store.KindPool {
		v.Kind, v.State, v.Holder, v.TTL = kindPool, stateDeclared, "", 0
		return v
	}
	switch verdict := rules.Judge(seen, session, "", nil, now); {
	case verdict.Standing == rules.Free:
		v.State, v.TTL = stateFree, 0
		if len(rec.Past) > 0 {
			v.Since = &rec.Past[0].Until
		}
		return v
	case verdict.Standing != rules.Taken:
		v.State = stateExpired
	default:
		v.expiresIn = max(verdict.Until.Sub(now), 0)
		left := v.expiresIn.Round(time.Millisecond).Seconds()
		v.Expires = &left
		switch rec.Mark {
		case store.MarkBroken:
			v.State = stateBroken
		case store.MarkHanded:
			v.State = stateHanded
		}
	}
	if session.Known {
		v.TTL = session.Rec.TTL.Seconds()
	}
	v.Since = &rec.Acquired
	return v
}

// terms returns the terms of a name, the present one first.
func (v view) terms() []termView {
	var all []termView
	if v.Holder != "" && v.State != stateHanded {
		all = append(all, termView{Holder: v.Holder, Token: v.Token, From: *v.Since})
	}
	all = append(all, v.Past...)
	for i := range all {
		all[i].Name = v.Name
	}
	return all
}

// changed reports whether v tells people anything that before didn't.
func (v view) changed(before view) bool {
	return v.State != before.State || v.Holder != before.Holder || v.Token != before.Token || v.Note != before.Note || v.holders() != before.holders()
}
