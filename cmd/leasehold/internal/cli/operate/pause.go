package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/view"
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
		Long: "Have the leader of NAME step down, and let no candidate lead until `leasehold resume`, or until --for is over. It waits (--wait)\n" +
			"until nobody leads: a leader that has died counts as one until its TTL is over. A pause stands\n" +
			"beside others, and nobody leads until all are over; it replaces one of the same user for the same reason, or the one of --replace.\n" +
			"`leasehold run` is not a candidate: it does not react to a pause. The exit code is 75 if somebody still leads after --wait; the pause stands.\n" +
			"With --for a candidate that starts meanwhile goes by its own time of day: where it is of importance that nobody leads before\n" +
			"the work is done, leave --for out.",
		Example: "  leasehold pause scheduler --reason 'the database is being moved'\n" +
			"  leasehold pause scheduler --reason 'a drill' --for 10m",
		Args:              cli.Want("NAME"),
		ValidArgsFunction: a.CompleteNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case p.Reason == "":
				return cli.Usage("--reason is missing: say why, for people who wonder at night that nobody leads")
			case length != 0 && (length < election.MinPause || length > election.MaxPause) || length == 0 && cmd.Flags().Changed("for"):
				return cli.Usage("--for %v: want a duration of %v to %v, or none: then it lasts until `leasehold resume`", length, election.MinPause, output.Roughly(election.MaxPause))
			case wait <= 0:
				return cli.Usage("--wait %v: want a duration above 0, or --no-wait", wait)
			case noWait && cmd.Flags().Changed("wait"):
				return cli.Usage("--no-wait and --wait exclude each other: give one")
			case noWait:
				wait = 0
			}
			if err := cli.HeldName(args[0]); err != nil {
				return err
			}
			return a.WithStore(cmd.Context(), false, func(st store.Store) error { return a.pause(cmd.Context(), st, args[0], p, length, wait) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&p.Reason, "reason", "", "why, for people")
	f.StringVar(&p.ID, "replace", "", "the `ID` of the pause to replace, as leasehold show NAME prints it")
	cli.DurationVar(f, &length, "for", 0, "how long it lasts (default: until leasehold resume)")
	cli.DurationVarP(f, &wait, "wait", "w", wait, "how long it may take until nobody leads")
	f.BoolVarP(&noWait, "no-wait", "n", false, "don't wait until nobody leads")
	return cmd
}

func (a *app) pause(ctx context.Context, st store.Store, name string, p election.Pause, length, wait time.Duration) error {
	before, err := a.Elected(ctx, st, name)
	if err != nil {
		return err
	}
	p.By, p.Since = cli.WhoAmI(), a.Clock.Wall()
	if length > 0 {
		p.Until = p.Since.Add(length)
	}
	switch err := election.SetPause(ctx, st, name, p); {
	case errors.Is(err, election.ErrNotPaused), errors.Is(err, election.ErrTooMany):
		return cli.Exit(cli.ExitNo, err)
	case err != nil:
		return err
	}
	for _, other := range before.AllPauses() {
		what := "beside this one it is"
		if p.ID == "" && other.By == p.By && other.Reason == p.Reason || p.ID != "" && other.ID == p.ID {
			what = "this replaces:"
		}
		a.Say("%s %s", what, view.PauseText(other, p.Since))
	}
	if before.Kind != view.KindElection {
		a.Say("nobody stands for election in %s: what holds it otherwise, as `leasehold run` does, takes no notice of a pause", name)
	}
	return a.awaitNobody(ctx, st, name, before, p.Until, wait)
}

// awaitNobody waits until nobody leads, for so long at most, unless that is 0.
func (a *app) awaitNobody(ctx context.Context, st store.Store, name string, v view.View, until time.Time, wait time.Duration) error {
	paused := name + " is paused"
	if !until.IsZero() {
		paused += " until " + output.At(until, a.Clock.Wall())
	}
	stands := slices.ContainsFunc(v.Candidates, func(c view.Candidate) bool { return c.Holder == v.Holder })
	switch {
	case v.State == view.StateHeld && !stands:
		a.Say("%s, but %s holds it and is no candidate: it takes no notice", paused, v.Holder)
		return nil
	case wait == 0:
		a.Say("%s; %s steps down when it hears of it", paused, orNobody(v.Holder))
		return nil
	}
	limited, cancel := clock.WithTimeout(ctx, a.Clock, wait)
	defer cancel()
	last := ""
	for l, err := range election.Watch(limited, st, name, election.WatchOptions{Clock: a.Clock, Poll: time.Second}) {
		switch {
		case err != nil:
			last = cli.OneLine(err)
		case l.Owner == "":
			a.Say("%s, and nobody leads", paused)
			return nil
		default:
			last = l.Owner + " still leads"
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return cli.Exit(cli.ExitConflict, fmt.Errorf("%s, but after %v %s", paused, wait, last))
}

func orNobody(holder string) string {
	if holder == "" {
		return "nobody"
	}
	return holder
}

func (a *app) unpauseCommand() *cobra.Command {
	id, all := "", false
	cmd := &cobra.Command{
		Use:   "resume NAME",
		Short: "End a pause",
		Long: "End the pause of NAME, so that a candidate leads again. Where several operators have paused it, --id says whose pause ends, and\n" +
			"--all ends all. The exit code is 1 when there is none, or several and it isn't said which: nothing is done then.",
		Example:           "  leasehold resume scheduler",
		Args:              cli.Want("NAME"),
		ValidArgsFunction: a.CompleteNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			if err := cli.HeldName(name); err != nil {
				return err
			}
			switch {
			case all && id != "":
				return cli.Usage("--id and --all exclude each other: give one")
			case all:
				id = election.AllPauses
			}
			return a.WithStore(cmd.Context(), false, func(st store.Store) error { return a.unpause(cmd.Context(), st, name, id) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&id, "id", "", "the pause to end, as leasehold show NAME prints it")
	f.BoolVar(&all, "all", false, "end all pauses")
	return cmd
}

func (a *app) unpause(ctx context.Context, st store.Store, name, id string) error {
	v, err := a.Elected(ctx, st, name)
	if err != nil {
		return err
	}
	switch err := election.Resume(ctx, st, name, id); {
	case errors.Is(err, election.ErrPauses):
		return cli.Exit(cli.ExitNo, fmt.Errorf("%w: --id ID, or --all", err))
	case errors.Is(err, election.ErrNotPaused):
		return cli.Exit(cli.ExitNo, err)
	case err != nil:
		return err
	}
	now := a.Clock.Wall()
	var was, left []string
	for _, p := range v.AllPauses() {
		text := fmt.Sprintf("%s, for %s", view.PauseText(p, now), output.Roughly(max(now.Sub(p.Since), 0)))
		if id == "" || id == election.AllPauses || id == p.ID {
			was = append(was, text)
		} else {
			left = append(left, view.PauseText(p, now))
		}
	}
	switch {
	case len(left) > 0:
		a.Say("%s stays paused: %s", name, strings.Join(left, "; "))
	case len(was) > 0:
		a.Say("%s is resumed; it was %s%s", name, strings.Join(was, "; and "), whoStands(v))
	default:
		a.Say("%s is resumed%s", name, whoStands(v))
	}
	return nil
}
