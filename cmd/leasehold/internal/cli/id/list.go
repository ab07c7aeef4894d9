package id

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/view"
	"github.com/leasehold/leasehold/identity"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/store"
)

// poolView is a pool as it is in JSON.
type poolView = api.DeclaredPool

func (a *app) idListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list [POOL]",
		Short: "List who has which value of a pool, or the pools",
		Long: "List the values of POOL that somebody has, or without POOL the pools. KEPT is \"assigned\" for a value that is its holder's until\n" +
			"it is released or expires, and \"running\" for one that a process or a session keeps. WINDOW is up to when ids that are made with the\n" +
			"value may be dated.",
		Example: "  leasehold id list\n" +
			"  leasehold id list machines\n" +
			"  leasehold id list machines -o json | jq -r '.[] | select(.as == \"web1\") | .value'",
		Args:              cli.Want("[POOL]"),
		ValidArgsFunction: a.completePools,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.WithStore(cmd.Context(), false, func(st store.Store) error {
				if len(args) == 0 {
					return a.idPools(cmd.Context(), st)
				}
				if err := cli.PoolArg(args[0]); err != nil {
					return err
				}
				return a.idList(cmd.Context(), st, args[0])
			})
		},
	}
	a.Flag(cmd.Flags(), "output")
	return cmd
}

// idPools writes which pools there are.
func (a *app) idPools(ctx context.Context, st store.Store) error {
	pools, err := identity.Pools(ctx, st)
	if err != nil {
		return err
	}
	views := make([]poolView, len(pools))
	for i, p := range pools {
		_, entries, err := identity.List(ctx, st, p.Pool)
		if err != nil {
			return err
		}
		views[i] = api.PoolOf(p)
		views[i].Held = new(len(entries))
	}
	switch {
	case a.Output() != output.Table:
		return output.WriteList(a.Out, views, a.Output() == output.Lines)
	case len(views) == 0:
		a.Say("no pools: the first `leasehold id assign POOL --range 1-254` makes one")
		return nil
	}
	name, values, held := output.Column{Title: "POOL", Cut: true}, output.Column{Title: "VALUES", Cut: true}, output.Column{Title: "HELD"}
	layout := output.Column{Title: "LAYOUT", Cut: true}
	for i, v := range views {
		name.Cells = append(name.Cells, output.Plain(v.Pool))
		values.Cells = append(values.Cells, output.Plain(strings.TrimPrefix(pools[i].Values.String(), "the ")))
		held.Cells = append(held.Cells, fmt.Sprintf("%d of %d", *v.Held, v.Size))
		layout.Cells = append(layout.Cells, output.Plain(output.OrDash(v.Layout)))
	}
	return output.WriteTable(a.Out, []output.Column{name, held, values, layout}, output.Width(a.Out), nil)
}

// idList writes who has which value.
func (a *app) idList(ctx context.Context, st store.Store, pool string) error {
	_, entries, err := identity.List(ctx, st, pool)
	if err != nil {
		return noPool(pool, err)
	}
	views := make([]idView, len(entries))
	for i, e := range entries {
		if views[i], err = a.idView(ctx, st, pool, e); err != nil {
			return err
		}
	}
	switch {
	case a.Output() != output.Table:
		return output.WriteList(a.Out, views, a.Output() == output.Lines)
	case len(views) == 0:
		a.Say("nobody has a value of %s", pool)
		return nil
	}
	return output.WriteTable(a.Out, idColumns(views, a.Clock.Wall()), output.Width(a.Out), view.Painter(a.Out))
}

func idColumns(views []idView, now time.Time) []output.Column {
	value, name, state := output.Column{Title: "VALUE"}, output.Column{Title: "NAME", Cut: true}, output.Column{Title: "STATE"}
	kept, since, expires := output.Column{Title: "KEPT"}, output.Column{Title: "SINCE"}, output.Column{Title: "EXPIRES"}
	window, holder := output.Column{Title: "WINDOW"}, output.Column{Title: "HOLDER", Cut: true}
	for _, v := range views {
		value.Cells = append(value.Cells, output.Plain(v.Value))
		name.Cells = append(name.Cells, output.Plain(output.OrDash(v.As)))
		state.Cells = append(state.Cells, string(v.State))
		kept.Cells = append(kept.Cells, string(v.Kept))
		since.Cells = append(since.Cells, fmt.Sprintf("%s (%s)", output.At(v.Acquired, now), output.Ago(v.Acquired, now)))
		since.Short = append(since.Short, output.Ago(v.Acquired, now))
		in, up := "-", "-"
		if v.ExpiresIn != nil {
			in = "in " + output.Roughly(v.expiresIn)
		}
		if v.Ceiling != nil {
			up = "up to " + output.At(*v.Ceiling, now)
		}
		expires.Cells = append(expires.Cells, in)
		window.Cells = append(window.Cells, up)
		window.Short = append(window.Short, strings.TrimPrefix(up, "up to "))
		holder.Cells = append(holder.Cells, output.Plain(v.Holder))
	}
	return []output.Column{value, name, state, kept, since, expires, window, holder}
}
