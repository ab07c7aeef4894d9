package id

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/identity"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

func (a *app) idImportCommand() *cobra.Command {
	var values identity.Values
	cmd := &cobra.Command{
		Use:   "import POOL FILE",
		Short: "Adopt assignments that were made elsewhere",
		Long: "Assign to each node in FILE the value that it has: JSON, {\"node\": value}, or what `knife search node … -a ATTRIBUTE -F json` prints;\n" +
			"- is standard input. If a value is there twice, or doesn't go with what the pool says, nothing is adopted: the exit code is 1, and a\n" +
			"table says why. What is assigned already stays as it is, so it may be repeated.",
		Example: "  leasehold id import machines nodes.json --range 1-254\n" +
			"  knife search node 'server_id:*' -a server_id -F json | leasehold id import machines --range 1-254 -",
		Args:              cli.Want("POOL", "FILE"),
		ValidArgsFunction: a.completePoolThenFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.PoolArg(args[0]); err != nil {
				return err
			}
			if err := checkValues(values); err != nil {
				return err
			}
			data, err := a.readAssigned(args[1])
			if err != nil {
				return err
			}
			o := identity.AssignOptions{Options: identity.Options{Values: values}, Info: map[string]string{"user": cli.WhoAmI(), "operation": "import"}}
			if cmd.Flags().Changed("ttl") {
				o.TTL = a.Duration("ttl")
				if o.TTL < store.MinTTL || o.TTL > store.MaxTTL {
					return cli.Usage("--ttl %v: want %v to %v", o.TTL, store.MinTTL, store.MaxTTL)
				}
			}
			return a.WithManager(cmd.Context(), true, func(m *lease.Manager) error { return a.idImport(cmd.Context(), m, args[0], data, o) })
		},
	}
	valuesFlags(cmd.Flags(), &values)
	a.Flag(cmd.Flags(), "ttl")
	cmd.Flags().Lookup("ttl").Usage = "how long the values stay taken unless they are assigned again (default 8784h)"
	return cmd
}

// completePoolThenFile offers pools, and after that files.
func (a *app) completePoolThenFile(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 1 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return a.completePools(cmd, args, prefix)
}

func (a *app) idImport(ctx context.Context, m *lease.Manager, pool string, data map[string]string, o identity.AssignOptions) error {
	made, err := identity.Import(ctx, m, pool, data, o)
	var refused *identity.ImportError
	if !errors.As(err, &refused) {
		if err == nil {
			a.Say("%d of %d are new in %s", len(made), len(data), pool)
		} else if len(made) > 0 {
			a.Say("%d were adopted before that; the same command continues where it was", len(made))
		}
		return a.idError(err)
	}
	value, names, why := output.Column{Title: "VALUE"}, output.Column{Title: "NODE"}, output.Column{Title: "WHY NOT"}
	for _, d := range refused.Duplicates {
		value.Cells = append(value.Cells, output.Plain(d.Value))
		names.Cells = append(names.Cells, output.Plain(strings.Join(d.Holders, ", ")))
		why.Cells = append(why.Cells, "it can be of one only")
	}
	for _, c := range refused.Conflicts {
		value.Cells = append(value.Cells, output.Plain(c.Value))
		names.Cells = append(names.Cells, output.Plain(c.Name))
		why.Cells = append(why.Cells, output.Plain(c.Why))
	}
	if err := output.WriteTable(a.Out, []output.Column{value, names, why}, 0, nil); err != nil {
		return err
	}
	return cli.Exit(cli.ExitNo, errors.New("nothing was adopted: mend the table's rows, and import again"))
}

func (a *app) idDuplicatesCommand() *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "duplicates (POOL | --from-json FILE)",
		Short: "Find values that several have",
		Long: "Write the values of POOL that more than one instance has; or those of FILE: JSON, {\"node\": value}, or what `knife search node … -a\n" +
			"ATTRIBUTE -F json` prints; - is standard input. The exit code is 1 if there are any.",
		Example: "  leasehold id duplicates machines\n" +
			"  knife search node 'server_id:*' -a server_id -F json | leasehold id duplicates --from-json -",
		Args:              cli.Want("[POOL]"),
		ValidArgsFunction: a.completePools,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch given := cmd.Flags().Changed("from-json"); {
			case given && len(args) > 0:
				return cli.Usage("POOL and --from-json exclude each other: give one")
			case given:
				data, err := a.readAssigned(path)
				if err != nil {
					return err
				}
				return a.duplicates(identity.DuplicatesIn(data))
			case len(args) == 0:
				return cli.Usage("POOL is missing: leasehold id duplicates POOL, or --from-json FILE")
			}
			if err := cli.PoolArg(args[0]); err != nil {
				return err
			}
			return a.WithStore(cmd.Context(), false, func(st store.Store) error {
				ctx, cancel := clock.WithTimeout(cmd.Context(), a.Clock, idLimit)
				defer cancel()
				all, err := identity.Duplicates(ctx, st, args[0])
				if err != nil {
					return noPool(args[0], err)
				}
				return a.duplicates(all)
			})
		},
	}
	cmd.Flags().StringVar(&path, "from-json", "", "look at what this file says, not at a pool")
	a.Flag(cmd.Flags(), "output")
	return cmd
}

// duplicateView is a value that several have, as it is in JSON.
type duplicateView = api.SharedValue

// duplicates writes what was found.
func (a *app) duplicates(all []identity.Duplicate) error {
	views := make([]duplicateView, len(all))
	value, names := output.Column{Title: "VALUE"}, output.Column{Title: "OF"}
	for i, d := range all {
		views[i] = duplicateView{Value: d.Value, Names: d.Holders}
		value.Cells = append(value.Cells, output.Plain(d.Value))
		names.Cells = append(names.Cells, output.Plain(strings.Join(d.Holders, ", ")))
	}
	switch {
	case a.Output() != output.Table:
		if err := output.WriteList(a.Out, views, a.Output() == output.Lines); err != nil {
			return err
		}
	case len(all) == 0:
		a.Say("no duplicates")
	default:
		if err := output.WriteTable(a.Out, []output.Column{value, names}, 0, nil); err != nil {
			return err
		}
	}
	if len(all) > 0 {
		return cli.Exit(cli.ExitNo, nil)
	}
	return nil
}
