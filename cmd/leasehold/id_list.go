package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

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
		Args:              want("[POOL]"),
		ValidArgsFunction: a.completePools,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withStore(cmd.Context(), false, func(st store.Store) error {
				if len(args) == 0 {
					return a.idPools(cmd.Context(), st)
				}
				if err := poolArg(args[0]); err != nil {
					return err
				}
				return a.idList(cmd.Context(), st, args[0])
			})
		},
	}
	a.flag(cmd.Flags(), "output")
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
	case a.output() != outputTable:
		return writeList(a.out, views, a.output() == outputLines)
	case len(views) == 0:
		a.say("no pools: the first `leasehold id assign POOL --range 1-254` makes one")
		return nil
	}
	name, values, held := column{title: "POOL", cut: true}, column{title: "VALUES", cut: true}, column{title: "HELD"}
	layout := column{title: "LAYOUT", cut: true}
	for i, v := range views {
		name.cells = append(name.cells, plain(v.Pool))
		values.cells = append(values.cells, plain(strings.TrimPrefix(pools[i].Values.String(), "the ")))
		held.cells = append(held.cells, fmt.Sprintf("%d of %d", *v.Held, v.Size))
		layout.cells = append(layout.cells, plain(orDash(v.Layout)))
	}
	return writeTable(a.out, []column{name, held, values, layout}, width(a.out), nil)
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
	case a.output() != outputTable:
		return writeList(a.out, views, a.output() == outputLines)
	case len(views) == 0:
		a.say("nobody has a value of %s", pool)
		return nil
	}
	return writeTable(a.out, idColumns(views, a.clk.Wall()), width(a.out), painter(a.out))
}

func idColumns(views []idView, now time.Time) []column {
	value, name, state := column{title: "VALUE"}, column{title: "NAME", cut: true}, column{title: "STATE"}
	kept, since, expires := column{title: "KEPT"}, column{title: "SINCE"}, column{title: "EXPIRES"}
	window, holder := column{title: "WINDOW"}, column{title: "HOLDER", cut: true}
	for _, v := range views {
		value.cells = append(value.cells, plain(v.Value))
		name.cells = append(name.cells, plain(orDash(v.As)))
		state.cells = append(state.cells, string(v.State))
		kept.cells = append(kept.cells, string(v.Kept))
		since.cells = append(since.cells, fmt.Sprintf("%s (%s)", at(v.Acquired, now), ago(v.Acquired, now)))
		since.short = append(since.short, ago(v.Acquired, now))
		in, up := "-", "-"
		if v.ExpiresIn != nil {
			in = "in " + roughly(v.expiresIn)
		}
		if v.Ceiling != nil {
			up = "up to " + at(*v.Ceiling, now)
		}
		expires.cells = append(expires.cells, in)
		window.cells = append(window.cells, up)
		window.short = append(window.short, strings.TrimPrefix(up, "up to "))
		holder.cells = append(holder.cells, plain(v.Holder))
	}
	return []column{value, name, state, kept, since, expires, window, holder}
}
