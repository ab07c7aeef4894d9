package look

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/view"
)

func (a *app) historyCommand() *cobra.Command {
	var t times
	cmd := &cobra.Command{
		Use:   "history NAME | --since TIME [NAME | --prefix PREFIX]",
		Short: "List the latest terms of a name, the present one first, or what became of all names",
		Long: "List the terms of ownership that are kept with a name: the present one, if there is one, and the last 8 before it.\n" +
			"Of a job (run --once-per, run --tick), list its last 8 turns, too, with the exit codes.\n\n" +
			"With --since, list what became of names in a time, from the journal of a server (`serve --journal`): --store says where it is. Without\n" +
			"a journal, what the records remember is all there is.",
		Example:           "  leasehold history billing\n  leasehold history --since 1h --prefix backup/\n  leasehold history --since 1h --report > incident.md",
		Args:              t.args,
		ValidArgsFunction: a.CompleteNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if q, err := t.query(args, a.Clock.Wall()); err != nil || t.since != "" {
				if err != nil {
					return err
				}
				return a.past(cmd.Context(), q, t.report)
			}
			return a.withView(cmd.Context(), args[0], false, func(v view.View) error {
				if a.Output() != output.Table {
					return output.WriteList(a.Out, v.Terms(), a.Output() == output.Lines)
				}
				return output.WriteTable(a.Out, historyColumns(v.Terms(), a.Clock.Wall()), output.Width(a.Out), nil)
			})
		},
	}
	t.flags(cmd)
	a.Flag(cmd.Flags(), "output")
	return cmd
}

func historyColumns(terms []view.Term, now time.Time) []output.Column {
	token, from, until := output.Column{Title: "TOKEN"}, output.Column{Title: "FROM"}, output.Column{Title: "UNTIL"}
	why, holder, turn := output.Column{Title: "ENDED", Cut: true}, output.Column{Title: "HOLDER", Cut: true}, output.Column{Title: "TURN"}
	jobs := false
	for _, t := range terms {
		token.Cells = append(token.Cells, t.Token.String())
		from.Cells = append(from.Cells, fmt.Sprintf("%s (%s)", output.At(t.From, now), output.Ago(t.From, now)))
		from.Short = append(from.Short, output.At(t.From, now))
		end := "-"
		if !t.Until.IsZero() {
			end = output.At(t.Until, now)
		}
		until.Cells = append(until.Cells, end)
		why.Cells = append(why.Cells, output.OrDash(t.Ended))
		holder.Cells = append(holder.Cells, t.Holder)
		turn.Cells = append(turn.Cells, output.OrDash(view.TurnText(t.Turn)))
		jobs = jobs || t.Turn != nil
	}
	if jobs {
		return []output.Column{token, from, until, turn, holder, why}
	}
	return []output.Column{token, from, until, holder, why}
}
