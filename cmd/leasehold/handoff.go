package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// handoff is what `handoff` was asked to do.
type handoff struct {
	name   string
	to     string
	anyone bool
	reason string
	wait   time.Duration
}

func (a *app) handoffCommand() *cobra.Command {
	h := handoff{wait: 30 * time.Second}
	var noWait bool
	cmd := &cobra.Command{
		Use:   "handoff NAME --to HOLDER",
		Short: "Have the leader hand over to another candidate",
		Long: "Have the leader of NAME stop what it does, and hand over to HOLDER with one write: no TTL passes in between. HOLDER is the\n" +
			"name of a candidate (--as) or its holder's id, or the beginning of one, up to a slash; `leasehold candidates` lists them.\n" +
			"With --any the leader lets go, and whoever is quick is next.\n\n" +
			"It waits until the successor leads (--wait), and says how long nobody led. The exit code is 1 if nobody leads, or HOLDER is\n" +
			"no candidate: nothing is done then; and 75 if it takes longer than --wait, or another candidate leads then.",
		Example:           "  leasehold handoff scheduler --to west --reason 'east is drained'",
		Args:              want("NAME"),
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			h.name = args[0]
			switch {
			case h.to == "" && !h.anyone:
				return usage("--to is missing: `leasehold candidates %s` lists who it may be; --any leaves it open", h.name)
			case h.to != "" && h.anyone:
				return usage("--to and --any exclude each other: give one")
			case h.wait < 0 || h.wait == 0 && !noWait:
				return usage("--wait %v: want a duration above 0, or --no-wait", h.wait)
			case noWait && cmd.Flags().Changed("wait"):
				return usage("--no-wait and --wait exclude each other: give one")
			case noWait:
				h.wait = 0
			}
			if err := heldName(h.name); err != nil {
				return err
			}
			return a.withStore(cmd.Context(), false, func(st store.Store) error { return a.handoff(cmd.Context(), st, h) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&h.to, "to", "", "the candidate that is to lead")
	f.BoolVar(&h.anyone, "any", false, "let whoever is quick lead")
	f.StringVar(&h.reason, "reason", "", "why, for the leader's words")
	f.DurationVarP(&h.wait, "wait", "w", h.wait, "how long it may take")
	f.BoolVarP(&noWait, "no-wait", "n", false, "don't wait for it")
	_ = cmd.RegisterFlagCompletionFunc("to", a.completeCandidates)
	return cmd
}

func (a *app) handoff(ctx context.Context, st store.Store, h handoff) error {
	v, err := a.elected(ctx, st, h.name)
	if err != nil {
		return err
	}
	by := whoAmI()
	if h.reason != "" {
		by += ": " + h.reason
	}
	began := a.clk.Now()
	order, err := election.HandOver(ctx, st, h.name, v.Token, h.to, by)
	switch {
	case err != nil:
		return v.notOrdered(h, err)
	case order.Done:
		a.say("%s leads already", order.To)
		return nil
	case h.wait == 0:
		a.say("%s is told to hand %s over", order.From.Owner, h.name)
		return nil
	}
	next, err := a.awaitTerm(ctx, st, h, v, order.To)
	if err != nil {
		return err
	}
	a.say("%s leads (token %d), %v after the order%s", next.Owner, next.Token, a.clk.Now().Sub(began).Round(time.Millisecond), a.gap(ctx, st, h.name, v.Token, next))
	return nil
}

// notOrdered says why nothing was ordered, and what can be done.
func (v view) notOrdered(h handoff, err error) error {
	switch {
	case errors.Is(err, election.ErrNotElected), errors.Is(err, election.ErrNoLeader) && len(v.Holders) > 0:
		err = v.noLeader(h)
	case errors.Is(err, election.ErrNoLeader) && v.pause != "":
		err = fmt.Errorf("nobody leads %s: it is %s; `leasehold resume %s` ends that", h.name, v.pause, h.name)
	case errors.Is(err, election.ErrNoLeader):
		err = fmt.Errorf("nobody leads %s: it is %s%s", h.name, v.State, v.whoStands())
	case !errors.Is(err, election.ErrNoCandidate) && !errors.Is(err, fence.ErrStale): // stale: another leads since just now
		return err
	}
	return &exitError{exitNo, err}
}

// noLeader says what to do about a holder that is no candidate, as that of `leasehold run` isn't: what it runs would begin anew
// elsewhere, so that is for somebody to decide.
func (v view) noLeader(h handoff) error {
	if len(v.Holders) > 1 {
		return fmt.Errorf("%s is shared by %d, of whom none leads: `leasehold show %s` lists them, and `leasehold break %s --token N` ends the one under token N",
			h.name, len(v.Holders), h.name, h.name)
	}
	token := v.Token
	if len(v.Holders) == 1 {
		token = v.Holders[0].Token
	}
	next := "whoever is quick is next"
	switch {
	case v.Kind == kindFair && len(v.Waiting) > 0:
		next = v.Waiting[0].Holder + " is next in the queue"
		if i := slices.IndexFunc(v.Waiting, func(w shareView) bool { return w.Holder == h.to || strings.HasPrefix(w.Holder, h.to+"/") }); h.to != "" && i > 0 {
			next += fmt.Sprintf("; %s is number %d there", v.Waiting[i].Holder, i+1)
		}
	case len(v.Candidates) > 0:
		next = "a candidate leads then" + v.whoStands()
	}
	return fmt.Errorf("%s holds %s and is no candidate (`leasehold run`, say), so it can't be told to hand over. Wait until its command has ended, or end it: "+
		"leasehold break %s --token %d --reason 'why'; %s", v.Holder, h.name, h.name, token, next)
}

// whoStands lists the candidates, for the end of a sentence.
func (v view) whoStands() string {
	if len(v.Candidates) == 0 {
		return "; there is no candidate"
	}
	var all []string
	for _, c := range v.Candidates {
		text := plain(c.Name)
		if c.Name != c.Holder {
			text += " (" + c.Holder + ")"
		}
		if c.Role != roleCandidate {
			text += ", " + string(c.Role)
		}
		all = append(all, text)
	}
	return "; candidates: " + strings.Join(all, "; ")
}

// awaitTerm blocks until a term after that of v has begun, and returns it. It is an error when it is not that of to.
func (a *app) awaitTerm(ctx context.Context, st store.Store, h handoff, v view, to string) (election.Leader, error) {
	limited, cancel := clock.WithTimeout(ctx, a.clk, h.wait)
	defer cancel()
	last := v.Holder + " still leads"
	for l, err := range election.Observe(limited, st, a.clk, h.name, time.Second) {
		switch {
		case err != nil:
			last = oneLine(err)
		case l.Owner == "":
			last = "nobody leads"
		case l.Token <= v.Token:
		case to != "" && l.Owner != to:
			return l, &exitError{exitConflict, fmt.Errorf("%s leads (token %d), not %s, whose claim came too late or failed: give the order again", l.Owner, l.Token, to)}
		default:
			return l, nil
		}
	}
	if ctx.Err() != nil {
		return election.Leader{}, context.Cause(ctx)
	}
	return election.Leader{}, &exitError{exitConflict, fmt.Errorf("%s has not changed hands within %v: %s; the order stands while that term lasts", h.name, h.wait, last)}
}

// gap says for how long nobody led between the term under token and next, as their clocks have it, if the record tells.
func (a *app) gap(ctx context.Context, st store.Store, name string, token fence.Token, next election.Leader) string {
	rec, err := store.Load(ctx, st, name)
	if err != nil || rec.Token != next.Token {
		return ""
	}
	for _, t := range rec.Past {
		if gap := rec.Acquired.Sub(t.Until); t.Token == token && gap >= 0 {
			return fmt.Sprintf("; nobody led for %v, by their clocks", gap.Round(100*time.Microsecond))
		}
	}
	return ""
}

// elected returns the view of a name, with its election.
func (a *app) elected(ctx context.Context, st store.Store, name string) (view, error) {
	rec, err := store.Load(ctx, st, name)
	if err != nil {
		return view{}, err
	}
	return a.full(ctx, st, rec)
}

func (a *app) completeCandidates(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 || a.configure(cmd) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := clock.WithTimeout(cmd.Context(), a.clk, completeTimeout)
	defer cancel()
	var names []string
	_ = a.withStore(ctx, false, func(st store.Store) error { // a shell has no use for the error
		v, err := a.elected(ctx, st, args[0])
		for _, c := range v.Candidates {
			names = append(names, c.Name)
		}
		return err
	})
	return names, cobra.ShellCompDirectiveNoFileComp
}
