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
	"github.com/leasehold/leasehold/internal/api"
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

type (
	shareView     = api.Share     // a hold of a share, or a wait for one, as it is in JSON
	pauseView     = api.Pause     // who paused an election, as it is in JSON
	candidateView = api.Candidate // a candidate as it is in JSON
)

// The roles of candidates.
const (
	roleLeader    = api.RoleLeader
	roleCandidate = api.RoleCandidate
)

// stateWaiting is that of one who waits for a share.
const stateWaiting = api.ShareWaiting

// sessionState returns how a session stands: held, broken, expired, or free when it is closed.
func (a *app) sessionState(ctx context.Context, st store.Store, key string) (api.State, error) {
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
		v.Waiters = len(v.Waiting)
		return nil
	}
	v.Kind, v.Waiting, v.Waiters = kindShared, waiting, len(waiting)
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
	v.State, v.Token, v.Holder, v.Holders = stateFree, max(v.Token, newest), "", held
	v.TTL, v.Acquired, v.since, v.Silent = nil, nil, nil, nil
	for _, h := range held {
		if v.State != stateHeld {
			v.State = api.State(h.State)
		}
		if v.since == nil || h.Since.Before(*v.since) {
			v.since = &h.Since
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
		v := api.ShareOf(of, s)
		if state != stateHeld {
			v.State = api.ShareState(state)
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
	all := state.Candidates
	state.Candidates = nil
	for _, c := range all {
		session, err := a.sessionState(ctx, st, c.Session)
		if err != nil {
			return err
		}
		if session != stateFree && session != stateExpired {
			state.Candidates = append(state.Candidates, c)
		}
	}
	v.AddElection(state)
	if v.Paused != nil && (v.State == stateFree || v.State == stateExpired) {
		v.pause = pauseText(*v.Paused, a.clk.Wall())
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
		parts = append(parts, string(v.Holders[0].Mode)+" by "+v.Holder)
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
		rows = append(rows, [2]string{"kind", string(v.Kind)})
	}
	if v.Paused != nil && v.pause == "" {
		rows = append(rows, [2]string{"pause", pauseText(*v.Paused, now) + ": it is about to take effect"})
	}
	for _, p := range v.Pauses {
		rows = append(rows, [2]string{"pause " + p.ID, pauseText(p, now)})
	}
	for _, h := range v.Holders {
		what := string(h.Mode)
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
			text = "to " + string(w.Mode) + ": " + text
		}
		if w.State != stateWaiting {
			text += ", " + string(w.State)
		}
		rows = append(rows, [2]string{fmt.Sprintf("waiting %d", i+1), text})
	}
	for _, c := range v.Candidates {
		text := string(c.Role)
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
