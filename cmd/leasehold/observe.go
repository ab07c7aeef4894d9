package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/supervise"
	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/store"
)

// observation is a line of observe in JSON.
type observation = api.LeaderState

func (a *app) observeCommand() *cobra.Command {
	var once bool
	cmd := &cobra.Command{
		Use:   "observe NAME",
		Short: "Follow who leads: a line for every term",
		Long: "Write who leads NAME now, and again whenever that changes, until it is interrupted: each with the age of the news, which is\n" +
			"how long ago the store said so. A leader that dies is noticed when its TTL is over. While the store can't be read, that is\n" +
			"said, with what was known last and how old that is. Nobody but the leader itself knows whether it leads at this instant.\n" +
			"With -o json or jsonl every line is an object.",
		Example:           "  leasehold observe scheduler\n  leasehold observe scheduler --once -o json | jq -r .leader",
		Args:              want("NAME"),
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := heldName(args[0]); err != nil {
				return err
			}
			return a.withStore(cmd.Context(), false, func(st store.Store) error { return a.observe(cmd.Context(), st, args[0], once) })
		},
	}
	cmd.Flags().BoolVar(&once, "once", false, "write one line; the exit code is 1 when nobody leads")
	a.flag(cmd.Flags(), "output")
	return cmd
}

// observePoll is the pause between two looks at whether a leader has died.
const observePoll = supervise.DefaultTTL / 10

func (a *app) observe(ctx context.Context, st store.Store, name string, once bool) error {
	said := ""
	for l, err := range election.Observe(ctx, st, a.clk, name, observePoll) {
		switch {
		case once && err != nil:
			return err
		case err != nil && err.Error() == said && a.output() == outputTable:
			continue // it goes on failing in the same way
		}
		said = ""
		if err != nil {
			said = err.Error()
		}
		o := observationOf(l, err)
		o.Time = a.clk.Wall()
		if err == nil && l.Owner == "" {
			o.Paused = a.pauseOf(ctx, st, name)
		}
		if err := a.writeObservation(o); err != nil {
			return err
		}
		if once && l.Owner == "" {
			return &exitError{code: exitNo}
		}
		if once {
			return nil
		}
	}
	return context.Cause(ctx)
}

// observationOf is what is known of l, or was known before failure.
func observationOf(l election.Leader, failure error) observation {
	o := observation{Name: l.Name, Leader: l.Owner, Token: l.Token, Stale: failure != nil}
	if failure == nil || l.Token != 0 {
		o.Age = new(api.Seconds(l.Age.Round(time.Millisecond)))
	}
	if l.Owner != "" {
		o.Acquired = &l.Since
	}
	if failure != nil {
		o.Error = oneLine(failure)
	}
	return o
}

// pauseOf returns why nobody leads, if that is known.
func (a *app) pauseOf(ctx context.Context, st store.Store, name string) *pauseView {
	state, err := election.Read(ctx, st, name)
	if err != nil || state.Pause == nil {
		return nil
	}
	p := pauseView(*state.Pause)
	return &p
}

func (a *app) writeObservation(o observation) error {
	if a.output() != outputTable {
		return writeJSON(a.out, o, true)
	}
	who := "nobody leads"
	switch {
	case o.Leader != "":
		who = fmt.Sprintf("%s leads (token %d) since %s", o.Leader, o.Token, at(*o.Acquired, o.Time))
	case o.Paused != nil:
		who += ": " + pauseText(*o.Paused, o.Time)
	}
	var age time.Duration
	if o.Age != nil {
		age = time.Duration(*o.Age)
	}
	switch {
	case o.Stale && o.Age == nil:
		who = "nothing is known: " + o.Error
	case o.Stale:
		who = fmt.Sprintf("nothing is known now: %s; %s ago: %s", o.Error, roughly(age), who)
	default:
		who += "; as of " + ageOf(age)
	}
	_, err := fmt.Fprintf(a.out, "%s %s %s\n", o.Time.Local().Format(time.DateTime), o.Name, who)
	return err
}

// ageOf says how old news is.
func ageOf(d time.Duration) string {
	if d < time.Second {
		return "now"
	}
	return roughly(d) + " ago"
}
