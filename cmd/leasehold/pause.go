package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
			"until nobody leads: a leader that has died counts as one until its TTL is over. A pause on a pause replaces it.\n" +
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
	if err := election.SetPause(ctx, st, name, p); err != nil {
		return err
	}
	if before.Pause != nil {
		a.say("this replaces: %s", pauseText(*before.Pause, p.Since))
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

func (a *app) unpauseCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "resume NAME",
		Short:             "End a pause",
		Long:              "End the pause of NAME, so that a candidate leads again. The exit code is 1 when there is none.",
		Example:           "  leasehold resume scheduler",
		Args:              want("NAME"),
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			if err := heldName(name); err != nil {
				return err
			}
			return a.withStore(cmd.Context(), false, func(st store.Store) error { return a.unpause(cmd.Context(), st, name) })
		},
	}
}

func (a *app) unpause(ctx context.Context, st store.Store, name string) error {
	v, err := a.elected(ctx, st, name)
	if err != nil {
		return err
	}
	switch err := election.Resume(ctx, st, name); {
	case errors.Is(err, election.ErrNotPaused):
		return &exitError{exitNo, err}
	case err != nil:
		return err
	}
	was := ""
	if v.Pause != nil {
		now := a.clk.Wall()
		was = fmt.Sprintf("; it was %s, for %s", pauseText(*v.Pause, now), roughly(max(now.Sub(v.Pause.Since), 0)))
	}
	a.say("%s is resumed%s%s", name, was, v.whoStands())
	return nil
}
