package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/lock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// The kinds of name that are more than a lease, as they are shown.
const (
	kindShared    = "rw"        // run --shared
	kindSemaphore = "semaphore" // run --slots
	kindFair      = "fair"      // run --fair
	kindElection  = "election"
	kindPool      = "pool" // run --id, id assign
)

// shareView is a hold of a share, or a wait for one, as it is in JSON.
type shareView struct {
	Holder  string      `json:"holder"`
	State   string      `json:"state"`          // held, expired or broken; of one who waits: waiting
	Mode    string      `json:"mode,omitempty"` // of a read/write lock: read or write
	Slot    *int        `json:"slot,omitempty"`
	Weight  int         `json:"weight,omitempty"` // of a semaphore's, where it is more than 1: how many slots it takes
	Token   fence.Token `json:"token,omitempty"`
	Since   time.Time   `json:"since"` // when it began to wait
	Session string      `json:"session"`
}

// pauseView says who paused an election, as it is in JSON.
type pauseView struct {
	ID     string    `json:"id,omitempty"` // for resume --id
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until,omitzero"` // when it ends by itself, if it does
}

// candidateView is a candidate as it is in JSON.
type candidateView struct {
	Name     string    `json:"name"`
	Holder   string    `json:"holder"`
	Role     string    `json:"role"` // leader, candidate or ineligible
	Priority int       `json:"priority"`
	Zone     string    `json:"zone,omitempty"`
	Since    time.Time `json:"since"`
}

// The roles of candidates.
const (
	roleLeader     = "leader"
	roleCandidate  = "candidate"
	roleIneligible = "ineligible"
)

// stateWaiting is that of one who waits for a share.
const stateWaiting = "waiting"

// sessionState returns how a session stands: held, broken, expired, or free when it is closed.
func (a *app) sessionState(ctx context.Context, st store.Store, key string) (string, error) {
	rec, err := store.Load(ctx, st, key)
	if err != nil {
		return "", err
	}
	v, err := a.look(ctx, st, rec)
	return v.State, err
}

// full returns the view of a name with all that is kept beside its own record, which rec is.
func (a *app) full(ctx context.Context, st store.Store, rec store.Record) (view, error) {
	v, err := a.look(ctx, st, rec)
	if err != nil || lease.Reserved(rec.Key) {
		return v, err
	}
	if err := a.addShares(ctx, st, &v, rec); err != nil {
		return v, err
	}
	return v, a.addElection(ctx, st, &v)
}

// addShares adds what the roster of a lock of that name says, whose own record is rec.
func (a *app) addShares(ctx context.Context, st store.Store, v *view, rec store.Record) error {
	state, err := lock.Beside(ctx, st, rec)
	if err != nil || state.Kind == "" {
		return unlessInvalid(err)
	}
	held, err := a.shares(ctx, st, state, state.Held)
	if err != nil {
		return err
	}
	waiting, err := a.shares(ctx, st, state, state.Waiting)
	if err != nil {
		return err
	}
	if state.Kind == lock.KindMutex {
		v.Kind, v.Waiting = kindFair, waiting
		for _, turn := range held { // whose turn it is, and who may be waiting for somebody who took no turn
			if turn.Holder != v.Holder {
				turn.State = stateWaiting
				v.Waiting = slices.Insert(v.Waiting, 0, turn)
			}
		}
		return nil
	}
	v.Kind, v.Waiting = kindShared, waiting
	if state.Kind == lock.KindSemaphore {
		v.Kind, v.Limit = kindSemaphore, state.Limit
	}
	if v.State != stateFree && v.State != stateExpired {
		return nil // somebody holds it as a whole
	}
	v.share(state.Token, held)
	return nil
}

// share has v tell who holds shares of it.
func (v *view) share(newest fence.Token, held []shareView) {
	v.State, v.Token, v.Holder, v.Since, v.Holders = stateFree, max(v.Token, newest), "", nil, held
	for _, h := range held {
		if v.State != stateHeld {
			v.State = h.State
		}
		if v.Since == nil || h.Since.Before(*v.Since) {
			v.Since = &h.Since
		}
	}
	if len(held) == 1 {
		v.Holder = held[0].Holder
	}
}

// shares returns those whose sessions have not been closed.
func (a *app) shares(ctx context.Context, st store.Store, of lock.State, all []lock.Share) ([]shareView, error) {
	var views []shareView
	for _, s := range all {
		state, err := a.sessionState(ctx, st, s.Session)
		if err != nil {
			return nil, err
		}
		if state == stateFree {
			continue
		}
		v := shareView{Holder: s.Owner, State: state, Token: s.Token, Since: s.Since, Session: s.Session}
		if s.Token == 0 && state == stateHeld {
			v.State = stateWaiting
		}
		if of.Kind == lock.KindSemaphore && s.Weight > 1 {
			v.Weight = s.Weight
		}
		switch {
		case of.Kind == lock.KindRW && s.Weight == of.Limit:
			v.Mode = "write"
		case of.Kind == lock.KindRW:
			v.Mode = "read"
		case of.Kind == lock.KindSemaphore && s.Token != 0:
			v.Slot = &s.Slot
		}
		views = append(views, v)
	}
	return views, nil
}

// addElection adds what is known of an election of that name.
func (a *app) addElection(ctx context.Context, st store.Store, v *view) error {
	if driver.CheckKey(election.KeyPrefix+v.Name) != nil {
		return nil // too long a name for one
	}
	state, err := election.Read(ctx, st, v.Name)
	if err != nil || state.Pause == nil && len(state.Candidates) == 0 {
		return unlessInvalid(err)
	}
	v.Kind = kindElection
	if p := state.Pause; p != nil {
		pause := pauseView(*p)
		v.Pause = &pause
		if v.State == stateFree || v.State == stateExpired {
			v.State, v.Note = statePaused, pauseText(pause, a.clk.Wall())
		}
	}
	if len(state.Pauses) > 1 {
		for _, p := range state.Pauses {
			v.Pauses = append(v.Pauses, pauseView(p))
		}
	}
	for _, c := range state.Candidates {
		session, err := a.sessionState(ctx, st, c.Session)
		if err != nil {
			return err
		}
		if session == stateFree || session == stateExpired {
			continue
		}
		role := roleCandidate
		switch {
		case c.Owner() == v.Holder && v.State == stateHeld:
			role = roleLeader
		case c.Ineligible:
			role = roleIneligible
		}
		v.Candidates = append(v.Candidates, candidateView{Name: c.Name, Holder: c.Owner(), Role: role, Priority: c.Priority, Zone: c.Zone, Since: c.Since})
	}
	return nil
}

// pauseText says by whom it was paused, why and until when.
func pauseText(p pauseView, now time.Time) string {
	text := "paused by " + p.By
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	if !p.Until.IsZero() {
		text += fmt.Sprintf(" (until %s, in %s)", at(p.Until, now), roughly(max(p.Until.Sub(now), 0)))
	}
	return text
}

// pauseEnd says until when nobody leads.
func pauseEnd(until time.Time, name string) string {
	if until.IsZero() {
		return fmt.Sprintf("until `leasehold resume %s`", name)
	}
	return fmt.Sprintf("until then, or `leasehold resume %s`", name)
}

// unlessInvalid returns err unless a store has no room for what is asked about: then there is nothing.
func unlessInvalid(err error) error {
	if errors.Is(err, store.ErrInvalid) {
		return nil
	}
	return err
}

// holders is who holds it, in short.
func (v view) holders() string {
	var parts []string
	switch n := len(v.Holders); {
	case v.Kind == kindSemaphore:
		for _, h := range v.Holders {
			n += max(h.Weight-1, 0)
		}
		parts = append(parts, fmt.Sprintf("%d of %d slots", n, v.Limit))
	case n > 1:
		parts = append(parts, fmt.Sprintf("%d readers", n))
	case n == 1:
		parts = append(parts, v.Holders[0].Mode+" by "+v.Holder)
	case v.Holder != "" || len(v.Waiting)+v.standingBy() == 0:
		parts = append(parts, orDash(v.Holder))
	}
	if len(v.Waiting) > 0 {
		parts = append(parts, fmt.Sprintf("%d waiting", len(v.Waiting)))
	}
	if n := v.standingBy(); n > 0 {
		parts = append(parts, fmt.Sprintf("%d standing by", n))
	}
	return strings.Join(parts, ", ")
}

// standingBy is how many candidates could lead, but don't.
func (v view) standingBy() (n int) {
	for _, c := range v.Candidates {
		if c.Role == roleCandidate {
			n++
		}
	}
	return n
}

// kindRows are the rows of a table that show has for what is more than a lease.
func (v view) kindRows(now time.Time) [][2]string {
	var rows [][2]string
	if v.Kind != "" {
		rows = append(rows, [2]string{"kind", v.Kind})
	}
	if v.Pause != nil && v.State != statePaused {
		rows = append(rows, [2]string{"pause", pauseText(*v.Pause, now) + ": it is about to take effect"})
	}
	for _, p := range v.Pauses {
		rows = append(rows, [2]string{"pause " + p.ID, pauseText(p, now)})
	}
	for _, h := range v.Holders {
		what := h.Mode
		if h.Slot != nil {
			what = fmt.Sprintf("slot %d", *h.Slot)
			if h.Weight > 1 {
				what += fmt.Sprintf(", of weight %d", h.Weight)
			}
		}
		rows = append(rows, [2]string{what, fmt.Sprintf("%s by %s, token %d, since %s (%s)", h.State, h.Holder, h.Token, at(h.Since, now), ago(h.Since, now))})
	}
	for i, w := range v.Waiting {
		text := fmt.Sprintf("%s, since %s (%s)", w.Holder, at(w.Since, now), ago(w.Since, now))
		if w.Mode != "" {
			text = "to " + w.Mode + ": " + text
		}
		if w.State != stateWaiting {
			text += ", " + w.State
		}
		rows = append(rows, [2]string{fmt.Sprintf("waiting %d", i+1), text})
	}
	for _, c := range v.Candidates {
		text := c.Role
		if c.Priority != 0 {
			text += fmt.Sprintf(", priority %d", c.Priority)
		}
		if c.Zone != "" {
			text += ", zone " + plain(c.Zone)
		}
		rows = append(rows, [2]string{"candidate", plain(c.Name) + " (" + text + ")"})
	}
	return rows
}
