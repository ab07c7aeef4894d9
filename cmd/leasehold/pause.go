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
	var reason string
	var noWait bool
	wait := time.Minute
	cmd := &cobra.Command{
		Use:   "pause NAME --reason TEXT",
		Short: "Let nobody lead until resume",
		Long: "Have whoever leads NAME step down, and let no candidate lead until `leasehold resume`. It waits (--wait) until nobody leads:\n" +
			"a leader that has died counts as one until its TTL is over. A pause on a pause replaces it. `leasehold run` is no candidate,\n" +
			"and takes no notice. The exit code is 75 if somebody still leads after --wait; the pause stands.",
		Example:           "  leasehold pause scheduler --reason 'the database is being moved'",
		Args:              want("NAME"),
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case reason == "":
				return usage("--reason is missing: say why, for whoever wonders at night that nobody leads")
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
			return a.withStore(cmd.Context(), false, func(st store.Store) error { return a.pause(cmd.Context(), st, args[0], reason, wait) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&reason, "reason", "", "why, for people")
	f.DurationVarP(&wait, "wait", "w", wait, "how long it may take until nobody leads")
	f.BoolVarP(&noWait, "no-wait", "n", false, "don't wait until nobody leads")
	return cmd
}

func (a *app) pause(ctx context.Context, st store.Store, name, reason string, wait time.Duration) error {
	before, err := a.elected(ctx, st, name)
	if err != nil {
		return err
	}
	if err := election.SetPause(ctx, st, name, whoAmI(), reason, a.clk.Wall()); err != nil {
		return err
	}
	if before.Pause != nil {
		a.say("this replaces: %s", pauseText(*before.Pause))
	}
	if before.Kind != kindElection {
		a.say("nobody stands for election in %s: what holds it otherwise, as `leasehold run` does, takes no notice of a pause", name)
	}
	return a.awaitNobody(ctx, st, name, before, wait)
}

// awaitNobody waits until nobody leads, for so long at most, unless that is 0.
func (a *app) awaitNobody(ctx context.Context, st store.Store, name string, v view, wait time.Duration) error {
	stands := slices.ContainsFunc(v.Candidates, func(c candidateView) bool { return c.Holder == v.Holder })
	switch {
	case v.State == stateHeld && !stands:
		a.say("%s is paused, but %s holds it and is no candidate: it takes no notice", name, v.Holder)
		return nil
	case wait == 0:
		a.say("%s is paused; %s steps down when it hears of it", name, orNobody(v.Holder))
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
			a.say("%s is paused, and nobody leads", name)
			return nil
		default:
			last = l.Owner + " still leads"
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return &exitError{exitConflict, fmt.Errorf("%s is paused, but after %v %s", name, wait, last)}
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
		was = fmt.Sprintf("; it was %s, for %s", pauseText(*v.Pause), roughly(max(a.clk.Wall().Sub(v.Pause.Since), 0)))
	}
	a.say("%s is resumed%s%s", name, was, v.whoStands())
	return nil
}
