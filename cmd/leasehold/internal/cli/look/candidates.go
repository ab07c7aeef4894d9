package look

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/view"
	"github.com/leasehold/leasehold/store"
)

func (a *app) candidatesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "candidates NAME",
		Short: "List who stands for election, and whether that is paused",
		Long: "List the candidates for the leadership of NAME, in the order in which they came, with the leader among them. A candidate that\n" +
			"has died is shown until the others notice, which takes its TTL. The exit code is 1 when there is none.",
		Example:           "  leasehold candidates scheduler",
		Args:              cli.Want("NAME"),
		ValidArgsFunction: a.CompleteNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.HeldName(args[0]); err != nil {
				return err
			}
			return a.WithStore(cmd.Context(), false, func(st store.Store) error { return a.candidates(cmd.Context(), st, args[0]) })
		},
	}
	a.Flag(cmd.Flags(), "output")
	return cmd
}

func (a *app) candidates(ctx context.Context, st store.Store, name string) error {
	v, err := a.Elected(ctx, st, name)
	if err != nil {
		return err
	}
	if v.Paused != nil {
		a.Say("%s is %s (%s)", name, view.PauseText(*v.Paused, a.Clock.Wall()), output.Ago(v.Paused.Since, a.Clock.Wall()))
	}
	switch {
	case a.Output() != output.Table:
		err = output.WriteList(a.Out, v.Candidates, a.Output() == output.Lines)
	case len(v.Candidates) > 0:
		err = output.WriteTable(a.Out, a.candidateColumns(v.Candidates), output.Width(a.Out), nil)
	}
	if err != nil || len(v.Candidates) > 0 {
		return err
	}
	if v.Holder != "" {
		return cli.Exit(cli.ExitNo, fmt.Errorf("%s has no candidate; %s holds it without being one", name, v.Holder))
	}
	return cli.Exit(cli.ExitNo, fmt.Errorf("%s has no candidate", name))
}

func (a *app) candidateColumns(all []view.Candidate) []output.Column {
	now := a.Clock.Wall()
	name, role, priority := output.Column{Title: "NAME", Cut: true}, output.Column{Title: "ROLE"}, output.Column{Title: "PRIORITY"}
	zone, since, holder := output.Column{Title: "ZONE"}, output.Column{Title: "SINCE"}, output.Column{Title: "HOLDER", Cut: true}
	for _, c := range all {
		name.Cells = append(name.Cells, output.Plain(c.Name))
		role.Cells = append(role.Cells, string(c.Role))
		priority.Cells = append(priority.Cells, strconv.Itoa(c.Priority))
		zone.Cells = append(zone.Cells, output.OrDash(output.Plain(c.Zone)))
		since.Cells = append(since.Cells, fmt.Sprintf("%s (%s)", output.At(c.Since, now), output.Ago(c.Since, now)))
		since.Short = append(since.Short, output.Ago(c.Since, now))
		holder.Cells = append(holder.Cells, c.Holder)
	}
	return []output.Column{name, role, priority, zone, since, holder}
}
