package id

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/identity"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/store"
)

func (a *app) idPoolCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "pool",
		Short:   "Widen a pool",
		Long:    "Change what the values of a pool are. `leasehold id list` lists the pools.",
		Example: "  leasehold id pool set machines --range 1-500",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownSubcommand(cmd, args[0])
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(a.idPoolSetCommand())
	return cmd
}

func (a *app) idPoolSetCommand() *cobra.Command {
	var values identity.Values
	cmd := &cobra.Command{
		Use:   "set POOL (--range LOW-HIGH | --names A,B | --prefixes NETWORK --bits N)",
		Short: "Give a pool more values",
		Long: "Make the values of POOL those that are named: all that it has, and more. A range covers the one that it had; names are given in full; a\n" +
			"network begins with the one that it had. Who has a value keeps it. From then on, who names the pool's values (--range of `id assign`) has\n" +
			"to name the new ones: leave them out of scripts before.\n\n" +
			"The exit code is 64 if values would be lost, and 1 if there is no such pool.",
		Example: "  leasehold id pool set machines --range 1-500\n" +
			"  leasehold id pool set racks --names red,green,blue",
		Args:              cli.Want("POOL"),
		ValidArgsFunction: a.completePools,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.PoolArg(args[0]); err != nil {
				return err
			}
			if err := checkValues(values); err != nil {
				return err
			}
			if values.Range == "" && len(values.Names) == 0 && values.Prefix == "" {
				return cli.Usage("the values are missing: leasehold id pool set %s --range 1-500, or --names, or --prefixes with --bits", args[0])
			}
			return a.WithStore(cmd.Context(), false, func(st store.Store) error {
				ctx, cancel := clock.WithTimeout(cmd.Context(), a.Clock, idLimit)
				defer cancel()
				got, err := identity.Widen(ctx, st, args[0], values)
				if errors.Is(err, identity.ErrUndeclared) {
					return noPool(args[0], err)
				}
				if errors.Is(err, identity.ErrMismatch) {
					return cli.Exit(cli.ExitUsage, err)
				}
				if err == nil {
					a.Say("%s has %d values: %s", got.Pool, got.Size, strings.TrimPrefix(got.Values.String(), "the "))
				}
				return err
			})
		},
	}
	valuesFlags(cmd.Flags(), &values)
	return cmd
}

func (a *app) idPruneCommand() *cobra.Command {
	var path string
	o := identity.PruneOptions{Idle: 24 * time.Hour}
	cmd := &cobra.Command{
		Use:   "prune POOL --from-json FILE",
		Short: "Free the values of machines that are gone",
		Long: "Free each value of POOL that is assigned to a name that FILE doesn't have. FILE lists the machines that are there: JSON, [\"web1\", \"web2\"], or\n" +
			"{\"web1\": …}, or what `knife search node … -a ATTRIBUTE -F json` prints; - is standard input. What a process or a session keeps stays, and\n" +
			"so does what was assigned within --idle: a machine that is new may not be in FILE yet. A FILE without machines is refused.\n\n" +
			"The values that were freed, or with --dry-run would be, are written.",
		Example: "  leasehold id prune machines --from-json live.json --dry-run\n" +
			"  knife search node 'name:*' -a name -F json | leasehold id prune machines --from-json -",
		Args:              cli.Want("POOL"),
		ValidArgsFunction: a.completePools,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.PoolArg(args[0]); err != nil {
				return err
			}
			if path == "" {
				return cli.Usage("--from-json is missing: the machines that are there, [\"web1\", \"web2\"]; - is standard input")
			}
			if o.Idle < 0 {
				return cli.Usage("--idle %v: want 0 or more", o.Idle)
			}
			live, err := a.readNames(path)
			if err != nil {
				return err
			}
			o.Live, o.By = func(name string) bool { return live[name] }, cli.WhoAmI()
			return a.WithStore(cmd.Context(), false, func(st store.Store) error { return a.idPrune(cmd.Context(), st, args[0], o) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&path, "from-json", "", "the machines that are there")
	cli.DurationVar(f, &o.Idle, "idle", o.Idle, "leave values that were assigned within this time")
	f.BoolVarP(&o.DryRun, "dry-run", "n", false, "change nothing, and write what would be freed")
	a.Flag(f, "output")
	return cmd
}

// prunedView is a value that was freed, as it is in JSON.
type prunedView = api.FreedValue

func (a *app) idPrune(ctx context.Context, st store.Store, pool string, o identity.PruneOptions) error {
	o.Clock = a.Clock
	ended, failed := identity.Prune(ctx, st, pool, o)
	if errors.Is(failed, identity.ErrUndeclared) {
		return noPool(pool, failed)
	}
	views := make([]prunedView, len(ended))
	value, name := output.Column{Title: "VALUE"}, output.Column{Title: "NAME"}
	for i, e := range ended {
		views[i] = prunedView{Value: e.Value, As: e.Name}
		value.Cells, name.Cells = append(value.Cells, output.Plain(e.Value)), append(name.Cells, output.Plain(e.Name))
	}
	var err error
	switch {
	case a.Output() != output.Table:
		err = output.WriteList(a.Out, views, a.Output() == output.Lines)
	case len(views) > 0:
		err = output.WriteTable(a.Out, []output.Column{value, name}, 0, nil)
	}
	done := "freed"
	if o.DryRun {
		done = "to free; this was a dry run, and nothing was changed"
	}
	a.Say("%s", fmt.Sprintf("%d of %s %s", len(ended), pool, done))
	return errors.Join(err, failed)
}
