package view

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/ballot"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/internal/kinds"
	"github.com/leasehold/leasehold/internal/roster"
	"github.com/leasehold/leasehold/internal/turns"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// The kinds of name that are more than a lease, as they are shown.
const (
	kindShared    = "rw"        // run --shared
	KindSemaphore = "semaphore" // run --slots
	KindFair      = "fair"      // run --fair
	KindElection  = "election"
	kindPool      = "pool" // run --id, id assign
)

type (
	// Share is a hold of a share, or a wait for one, as it is in JSON.
	Share = api.Share
	// Pause says who paused an election, as it is in JSON.
	Pause = api.Pause
	// Candidate is a candidate as it is in JSON.
	Candidate = api.Candidate
)

// The roles of candidates.
const (
	roleLeader    = api.RoleLeader
	RoleCandidate = api.RoleCandidate
)

// stateWaiting is that of one who waits for a share.
const stateWaiting = api.ShareWaiting

// sessionState returns how a session stands: held, broken, expired, or free when it is closed.
func (a *Viewer) sessionState(ctx context.Context, st store.Store, key string) (api.State, error) {
	rec, err := store.Load(ctx, st, key)
	if err != nil {
		return "", err
	}
	v, err := a.Look(ctx, st, rec)
	return v.State, err
}

// Full returns the view of a name with all that is kept beside its own record, which rec is.
func (a *Viewer) Full(ctx context.Context, st store.Store, rec store.Record) (View, error) {
	v, err := a.Look(ctx, st, rec)
	if err != nil || keyspace.Reserved(rec.Key) {
		return v, err
	}
	if err := a.AddShares(ctx, st, &v, rec); err != nil {
		return v, err
	}
	if v.turns, err = turns.Load(ctx, st, rec.Key); err != nil {
		return v, err
	}
	v.AddTurns(v.turns)
	return v, a.addElection(ctx, st, &v)
}

// Listed returns the view of a name that was found.
func (a *Viewer) Listed(ctx context.Context, st store.Store, n Named) (View, error) {
	if n.More {
		return a.Full(ctx, st, n.Rec)
	}
	v, err := a.Look(ctx, st, n.Rec)
	v.AddTurns(n.turns)
	return v, err
}

// AddShares adds what the roster of a lock of that name says, whose own record is rec.
func (a *Viewer) AddShares(ctx context.Context, st store.Store, v *View, rec store.Record) error {
	state, err := roster.Beside(ctx, st, rec)
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
	if state.Kind == roster.Mutex {
		v.Kind, v.Waiting = KindFair, waiting
		// Whose turn it is, and who may be waiting for somebody who took no turn.
		for _, turn := range held {
			if turn.Holder != v.Holder {
				turn.State = stateWaiting
				v.Waiting = slices.Insert(v.Waiting, 0, turn)
			}
		}
		v.Waiters = len(v.Waiting)
		return nil
	}
	v.Kind, v.Waiting, v.Waiters = kindShared, waiting, len(waiting)
	if state.Kind == roster.Semaphore {
		v.Kind, v.Limit = KindSemaphore, state.Limit
	}
	if v.State != StateFree && v.State != StateExpired {
		return nil // somebody holds it as a whole
	}
	v.share(state.Token, held)
	return nil
}

// share has v tell who holds shares of it.
func (v *View) share(newest fence.Token, held []Share) {
	v.State, v.Token, v.Holder, v.Holders = StateFree, max(v.Token, newest), "", held
	v.TTL, v.Acquired, v.Since, v.Silent = nil, nil, nil, nil
	for _, h := range held {
		if v.State != StateHeld {
			v.State = api.State(h.State)
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
func (a *Viewer) shares(ctx context.Context, st store.Store, of roster.State, all []roster.Share) ([]Share, error) {
	var views []Share
	for _, s := range all {
		state, err := a.sessionState(ctx, st, s.Session)
		if err != nil {
			return nil, err
		}
		if state == StateFree {
			continue
		}
		v := api.ShareOf(of, s)
		if state != StateHeld {
			v.State = api.ShareState(state)
		}
		views = append(views, v)
	}
	return views, nil
}

// addElection adds what is known of an election of that name.
func (a *Viewer) addElection(ctx context.Context, st store.Store, v *View) error {
	if driver.CheckKey(kinds.Elections+v.Name) != nil {
		return nil // too long a name for one
	}
	rec, err := store.Load(ctx, st, kinds.Elections+v.Name)
	if err != nil {
		return unlessInvalid(err)
	}
	state, err := ballot.StateOf(rec, a.Clock.Wall())
	if err != nil || state.Pause == nil && len(state.Candidates) == 0 {
		return err
	}
	v.Kind = KindElection
	all := state.Candidates
	state.Candidates = nil
	for _, c := range all {
		session, err := a.sessionState(ctx, st, c.Session)
		if err != nil {
			return err
		}
		if session != StateFree && session != StateExpired {
			state.Candidates = append(state.Candidates, c)
		}
	}
	v.AddElection(state)
	if v.Paused != nil && (v.State == StateFree || v.State == StateExpired) {
		v.PausedBy = PauseText(*v.Paused, a.Clock.Wall())
	}
	return nil
}

// PauseText says by whom it was paused, why and until when.
func PauseText(p Pause, now time.Time) string {
	text := "paused by " + p.By
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	if !p.Until.IsZero() {
		text += fmt.Sprintf(" (until %s, in %s)", output.At(p.Until, now), output.Roughly(max(p.Until.Sub(now), 0)))
	}
	return text
}

// PauseEnd says until when nobody leads.
func PauseEnd(until time.Time, name string) string {
	if until.IsZero() {
		return fmt.Sprintf("until `leasehold resume %s`", name)
	}
	return fmt.Sprintf("until then, or `leasehold resume %s`", name)
}

// HeldBy is who holds it, in short.
func (v View) HeldBy() string {
	var parts []string
	switch n := len(v.Holders); {
	case v.Kind == KindSemaphore:
		for _, h := range v.Holders {
			n += max(h.Weight-1, 0)
		}
		parts = append(parts, fmt.Sprintf("%d of %d slots", n, v.Limit))
	case n > 1:
		parts = append(parts, fmt.Sprintf("%d readers", n))
	case n == 1:
		parts = append(parts, string(v.Holders[0].Mode)+" by "+v.Holder)
	case v.Holder != "" || len(v.Waiting)+v.standingBy() == 0:
		parts = append(parts, output.OrDash(v.Holder))
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
func (v View) standingBy() (n int) {
	for _, c := range v.Candidates {
		if c.Role == RoleCandidate {
			n++
		}
	}
	return n
}

// Rows are the rows of a table that show has for what is more than a lease.
func (v View) Rows(now time.Time) [][2]string {
	var rows [][2]string
	if v.Kind != "" {
		rows = append(rows, [2]string{"kind", string(v.Kind)})
	}
	rows = append(rows, turnRows(v.Turn, v.CompletedTurn, now)...)
	if v.Paused != nil && v.PausedBy == "" {
		rows = append(rows, [2]string{"pause", PauseText(*v.Paused, now) + ": it is about to take effect"})
	}
	for _, p := range v.Pauses {
		rows = append(rows, [2]string{"pause " + p.ID, PauseText(p, now)})
	}
	for _, h := range v.Holders {
		what := string(h.Mode)
		if h.Slot != nil {
			what = fmt.Sprintf("slot %d", *h.Slot)
			if h.Weight > 1 {
				what += fmt.Sprintf(", of weight %d", h.Weight)
			}
		}
		rows = append(rows, [2]string{what, fmt.Sprintf("%s by %s, token %d, since %s (%s)", h.State, h.Holder, h.Token, output.At(h.Since, now), output.Ago(h.Since, now))})
	}
	for i, w := range v.Waiting {
		text := fmt.Sprintf("%s, since %s (%s)", w.Holder, output.At(w.Since, now), output.Ago(w.Since, now))
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
			text += ", zone " + output.Plain(c.Zone)
		}
		rows = append(rows, [2]string{"candidate", output.Plain(c.Name) + " (" + text + ")"})
	}
	return rows
}
