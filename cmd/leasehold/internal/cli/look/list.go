package look

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/view"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

func (a *app) listCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use:   "list [PREFIX]",
		Short: "List names and who holds them",
		Long: "List the names that begin with PREFIX, or all, and who holds them. Names that begin with a dot are Leasehold's own\n" +
			"(the records of sessions); -a shows them too.",
		Example:           "  leasehold list\n  leasehold list backup/ -o json | jq '.[] | select(.state == \"held\") | .holder'",
		Args:              cli.Want("[PREFIX]"),
		ValidArgsFunction: a.CompleteNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			prefix := strings.Join(args, "")
			if err := driver.CheckPrefix(prefix); err != nil {
				return cli.BadName("PREFIX", err)
			}
			return a.WithStore(cmd.Context(), false, func(st store.Store) error {
				return a.list(cmd.Context(), st, prefix, all || keyspace.Reserved(prefix))
			})
		},
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "also names that begin with a dot")
	a.Flag(cmd.Flags(), "output")
	return cmd
}

// mostKept is of how many names a list is kept for the next look: a file is written for each that
// was renewed, and the folder's are bounded.
const mostKept = 100

// list writes what can be read; a record that can't be is reported after that.
func (a *app) list(ctx context.Context, st store.Store, prefix string, all bool) error {
	views, err := a.views(ctx, st, prefix, all)
	if len(views) <= mostKept {
		a.KeepBook()
	}
	if err != nil && len(views) == 0 {
		return err
	}
	switch {
	case a.Output() != output.Table:
		err = errors.Join(output.WriteList(a.Out, views, a.Output() == output.Lines), err)
	case len(views) == 0:
		a.Say("no names%s", beginning(prefix))
	default:
		err = errors.Join(output.WriteTable(a.Out, listColumns(views, a.Clock.Wall()), output.Width(a.Out), view.Painter(a.Out)), err)
	}
	return err
}

func beginning(prefix string) string {
	if prefix == "" {
		return " have been held in this store"
	}
	return fmt.Sprintf(" that begin with %q have been held in this store", prefix)
}

// views returns what there is under prefix, by name.
func (a *app) views(ctx context.Context, st store.Store, prefix string, all bool) ([]view.View, error) {
	var views []view.View
	var errs []error
	records, err := view.Records(ctx, st, prefix)
	if err != nil {
		errs = append(errs, err)
	}
	for _, r := range records {
		if !all && keyspace.Reserved(r.Rec.Key) {
			continue
		}
		if r.Bad != nil {
			views = append(views, view.View{Lease: api.Lease{Name: r.Rec.Key, State: view.StateUnreadable, Problem: api.ProblemOf(r.Bad)}})
			continue
		}
		v, err := a.Listed(ctx, st, r)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		views = append(views, v)
	}
	slices.SortFunc(views, func(x, y view.View) int { return strings.Compare(x.Name, y.Name) })
	return views, errors.Join(errs...)
}

func listColumns(views []view.View, now time.Time) []output.Column {
	name, state, holder := output.Column{Title: "NAME", Cut: true}, output.Column{Title: "STATE"}, output.Column{Title: "HOLDER", Cut: true}
	token, since, expires := output.Column{Title: "TOKEN"}, output.Column{Title: "SINCE"}, output.Column{Title: "EXPIRES"}
	for _, v := range views {
		name.Cells = append(name.Cells, v.Name)
		state.Cells = append(state.Cells, v.Shown())
		holder.Cells = append(holder.Cells, v.HeldBy())
		token.Cells = append(token.Cells, v.Token.String())
		long, short := "-", "-"
		if v.Since != nil {
			short = output.Ago(*v.Since, now)
			long = fmt.Sprintf("%s (%s)", output.At(*v.Since, now), short)
		}
		since.Cells, since.Short = append(since.Cells, long), append(since.Short, short)
		in := "-"
		switch {
		case v.SilentFor > 0 && v.State == view.StateExpired:
			in = "silent " + output.Roughly(v.SilentFor)
		case v.SilentFor > 0:
			in = "in " + output.Roughly(v.LeftFor) + ", silent " + output.Roughly(v.SilentFor)
		case v.ExpiresIn != nil:
			in = "in " + output.Roughly(v.LeftFor)
		}
		expires.Cells, expires.Short = append(expires.Cells, in), append(expires.Short, strings.TrimPrefix(in, "in "))
	}
	columns := []output.Column{name, state, token, since, expires}
	if slices.ContainsFunc(views, func(v view.View) bool { return v.Turn != nil }) {
		columns = append(columns, turnColumn(views))
	}
	return append(columns, holder) // which gives way before the name
}

// turnColumn says of jobs when their last turn was, and what came of it.
func turnColumn(views []view.View) output.Column {
	turn := output.Column{Title: "LAST TURN"}
	for _, v := range views {
		long, short := view.TurnText(v.Turn), ""
		if v.Turn != nil {
			short = strings.TrimPrefix(view.Outcome(v.Turn), "exit ")
		}
		turn.Cells, turn.Short = append(turn.Cells, output.OrDash(long)), append(turn.Short, output.OrDash(short))
	}
	return turn
}
