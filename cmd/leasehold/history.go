package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

func (a *app) historyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:               "history NAME",
		Short:             "List the latest terms of a name, the present one first",
		Long:              "List the terms of ownership that are kept with a name: the present one, if there is one, and the last 8 before it.",
		Example:           "  leasehold history billing",
		Args:              want("NAME"),
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withView(cmd.Context(), args[0], func(v view) error {
				if a.output() != outputTable {
					return writeList(a.out, v.terms(), a.output() == outputLines)
				}
				return writeTable(a.out, historyColumns(v.terms(), a.clk.Wall()), width(a.out), nil)
			})
		},
	}
	a.flag(cmd.Flags(), "output")
	return cmd
}

func historyColumns(terms []termView, now time.Time) []column {
	token, from, until := column{title: "TOKEN"}, column{title: "FROM"}, column{title: "UNTIL"}
	why, holder := column{title: "ENDED", cut: true}, column{title: "HOLDER", cut: true}
	for _, t := range terms {
		token.cells = append(token.cells, t.Token.String())
		from.cells = append(from.cells, fmt.Sprintf("%s (%s)", at(t.From, now), ago(t.From, now)))
		from.short = append(from.short, at(t.From, now))
		end := "-"
		if !t.Until.IsZero() {
			end = at(t.Until, now)
		}
		until.cells = append(until.cells, end)
		why.cells = append(why.cells, orDash(t.Ended))
		holder.cells = append(holder.cells, t.Holder)
	}
	return []column{token, from, until, holder, why}
}
