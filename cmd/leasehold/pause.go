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
	"github.com/leasehold/leasehold/store"
)

func (a *app) pauseCommand() *cobra.Command {
	var p election.Pause
	var length time.Duration
	var noWait bool
	wait := time.Minute
	cmd := &cobra.Command{
		Use:   "pause NAME --reason TEXT",
		Short: "Let nobody lead until resume, or for a while",
		Long: "Have whoever leads NAME step down, and let no candidate lead until `leasehold resume`, or until --for is over. It waits (--wait)\n" +
			"until nobody leads: a leader that has died counts as one until its TTL is over. A pause stands\n" +
			"beside others, and nobody leads until all are over; it replaces one of the same user for the same reason, or the one of --replace.\n" +
			"`leasehold run` is no candidate, and takes no notice. The exit code is 75 if somebody still leads after --wait; the pause stands.\n" +
			"With --for a candidate that starts meanwhile goes by its own time of day: where it is of importance that nobody leads before\n" +
			"the work is done, leave --for out.",
		Example: "  leasehold pause scheduler --reason 'the database is being moved'\n" +
			"  leasehold pause scheduler --reason 'a drill' --for 10m",
		Args:              want("NAME"),
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case p.Reason == "":
				return usage("--reason is missing: say why, for whoever wonders at night that nobody leads")
			case length != 0 && (length < election.MinPause || length > election.MaxPause) || length == 0 && cmd.Flags().Changed("for"):
				return usage("--for %v: want a duration of %v to %v, or none: then it lasts until `leasehold resume`", length, election.MinPause, roughly(election.MaxPause))
			case wait <= 0:
				return usage("--wait %v: want a duration above 0, or --no-wait", wait)
			case noWait && cmd.Flags().Changed("wait"):
				return usage("--no-wait and --wait exclude each other: give one")
			case noWait:
				wait = 0
			}
			if err := heldName(args[0]); err != nil {
				return err
			}
			return a.withStore(cmd.Context(), false, func(st store.Store) error { return a.pause(cmd.Context(), st, args[0], p, length, wait) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&p.Reason, "reason", "", "why, for people")
	f.StringVar(&p.ID, "replace", "", "the `ID` of the pause to replace, as leasehold show NAME prints it")
	f.DurationVar(&length, "for", 0, "how long it lasts (default: until leasehold resume)")
	f.DurationVarP(&wait, "wait", "w", wait, "how long it may take until nobody leads")
	f.BoolVarP(&noWait, "no-wait", "n", false, "don't wait until nobody leads")
	return cmd
}

func (a *app) pause(ctx context.Context, st store.Store, name string, p election.Pause, length, wait time.Duration) error {
	before, err := a.elected(ctx, st, name)
	if err != nil {
		return err
	}
	p.By, p.Since = whoAmI(), a.clk.Wall()
	if length > 0 {
		p.Until = p.Since.Add(length)
	}
	switch err := election.SetPause(ctx, st, name, p); {
	case errors.Is(err, election.ErrNotPaused), errors.Is(err, election.ErrTooMany):
		return &exitError{exitNo, err}
	case err != nil:
		return err
	}
	for _, other := range before.pauses() {
		what := "beside this one it is"
		if p.ID == "" && other.By == p.By && other.Reason == p.Reason || p.ID != "" && other.ID == p.ID {
			what = "this replaces:"
		}
		a.say("%s %s", what, pauseText(other, p.Since))
	}
	if before.Kind != kindElection {
		a.say("nobody stands for election in %s: what holds it otherwise, as `leasehold run` does, takes no notice of a pause", name)
	}
	return a.awaitNobody(ctx, st, name, before, p.Until, wait)
}

// awaitNobody waits until nobody leads, for so long at most, unless that is 0.
func (a *app) awaitNobody(ctx context.Context, st store.Store, name string, v view, until time.Time, wait time.Duration) error {
	paused := name + " is paused"
	if !until.IsZero() {
		paused += " until " + at(until, a.clk.Wall())
	}
	stands := slices.ContainsFunc(v.Candidates, func(c candidateView) bool { return c.Holder == v.Holder })
	switch {
	case v.State == stateHeld && !stands:
		a.say("%s, but %s holds it and is no candidate: it takes no notice", paused, v.Holder)
		return nil
	case wait == 0:
		a.say("%s; %s steps down when it hears of it", paused, orNobody(v.Holder))
		return nil
	}
	limited, cancel := clock.WithTimeout(ctx, a.clk, wait)
	defer cancel()
	last := ""
	for l, err := range election.Observe(limited, st, a.clk, name, time.Second) {
		switch {
		case err != nil:
			last = oneLine(err)
		case l.Owner == "":
			a.say("%s, and nobody leads", paused)
			return nil
		default:
			last = l.Owner + " still leads"
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &exitError{exitConflict, fmt.Errorf("%s, but after %v %s", paused, wait, last)}
}

func orNobody(holder string) string {
	if holder == "" {
		return "nobody"
	}
	return holder
}

// pauses returns all there are.
func (v view) pauses() []pauseView {
	if v.Paused != nil && len(v.Pauses) == 0 {
		return []pauseView{*v.Paused}
	}
	return v.Pauses
}

func (a *app) unpauseCommand() *cobra.Command {
	id, all := "", false
	cmd := &cobra.Command{
		Use:   "resume NAME",
		Short: "End a pause",
		Long: "End the pause of NAME, so that a candidate leads again. Where several operators have paused it, --id says whose pause ends, and\n" +
			"--all ends all. The exit code is 1 when there is none, or several and it isn't said which: nothing is done then.",
		Example:           "  leasehold resume scheduler",
		Args:              want("NAME"),
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			if err := heldName(name); err != nil {
				return err
			}
			switch {
			case all && id != "":
				return usage("--id and --all exclude each other: give one")
			case all:
				id = election.AllPauses
			}
			return a.withStore(cmd.Context(), false, func(st store.Store) error { return a.unpause(cmd.Context(), st, name, id) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&id, "id", "", "the pause to end, as leasehold show NAME prints it")
	f.BoolVar(&all, "all", false, "end all pauses")
	return cmd
}

func (a *app) unpause(ctx context.Context, st store.Store, name, id string) error {
	v, err := a.elected(ctx, st, name)
	if err != nil {
		return err
	}
	switch err := election.Resume(ctx, st, name, id); {
	case errors.Is(err, election.ErrPauses):
		return &exitError{exitNo, fmt.Errorf("%w: --id ID, or --all", err)}
	case errors.Is(err, election.ErrNotPaused):
		return &exitError{exitNo, err}
	case err != nil:
		return err
	}
	now := a.clk.Wall()
	var was, left []string
	for _, p := range v.pauses() {
		text := fmt.Sprintf("%s, for %s", pauseText(p, now), roughly(max(now.Sub(p.Since), 0)))
		if id == "" || id == election.AllPauses || id == p.ID {
			was = append(was, text)
		} else {
			left = append(left, pauseText(p, now))
		}
	}
	switch {
	case len(left) > 0:
		a.say("%s stays paused: %s", name, strings.Join(left, "; "))
	case len(was) > 0:
		a.say("%s is resumed; it was %s%s", name, strings.Join(was, "; and "), v.whoStands())
	default:
		a.say("%s is resumed%s", name, v.whoStands())
	}
	return nil
}
