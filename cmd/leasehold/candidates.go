package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/store"
)

func (a *app) candidatesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "candidates NAME",
		Short: "List who stands for election, and whether that is paused",
		Long: "List the candidates for the leadership of NAME, in the order in which they came, with the leader among them. A candidate that\n" +
			"has died is shown until the others notice, which takes its TTL. The exit code is 1 when there is none.",
		Example:           "  leasehold candidates scheduler",
		Args:              want("NAME"),
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := heldName(args[0]); err != nil {
				return err
			}
			return a.withStore(cmd.Context(), false, func(st store.Store) error { return a.candidates(cmd.Context(), st, args[0]) })
		},
	}
	a.flag(cmd.Flags(), "output")
	return cmd
}

func (a *app) candidates(ctx context.Context, st store.Store, name string) error {
	v, err := a.elected(ctx, st, name)
	if err != nil {
		return err
	}
	if v.Paused != nil {
		a.say("%s is %s (%s)", name, pauseText(*v.Paused, a.clk.Wall()), ago(v.Paused.Since, a.clk.Wall()))
	}
	switch {
	case a.output() != outputTable:
		err = writeList(a.out, v.Candidates, a.output() == outputLines)
	case len(v.Candidates) > 0:
		err = writeTable(a.out, a.candidateColumns(v.Candidates), width(a.out), nil)
	}
	if err != nil || len(v.Candidates) > 0 {
		return err
	}
	if v.Holder != "" {
		return &exitError{exitNo, fmt.Errorf("%s has no candidate; %s holds it without being one", name, v.Holder)}
	}
	return &exitError{exitNo, fmt.Errorf("%s has no candidate", name)}
}

func (a *app) candidateColumns(all []candidateView) []column {
	now := a.clk.Wall()
	name, role, priority := column{title: "NAME", cut: true}, column{title: "ROLE"}, column{title: "PRIORITY"}
	zone, since, holder := column{title: "ZONE"}, column{title: "SINCE"}, column{title: "HOLDER", cut: true}
	for _, c := range all {
		name.cells = append(name.cells, plain(c.Name))
		role.cells = append(role.cells, string(c.Role))
		priority.cells = append(priority.cells, strconv.Itoa(c.Priority))
		zone.cells = append(zone.cells, orDash(plain(c.Zone)))
		since.cells = append(since.cells, fmt.Sprintf("%s (%s)", at(c.Since, now), ago(c.Since, now)))
		since.short = append(since.short, ago(c.Since, now))
		holder.cells = append(holder.cells, c.Holder)
	}
	return []column{name, role, priority, zone, since, holder}
}
