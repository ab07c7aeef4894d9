package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/clock"
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
		Args:              want("POOL", "FILE"),
		ValidArgsFunction: a.completePoolThenFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := poolArg(args[0]); err != nil {
				return err
			}
			if err := checkValues(values); err != nil {
				return err
			}
			data, err := a.readAssigned(args[1])
			if err != nil {
				return err
			}
			o := identity.AssignOptions{Options: identity.Options{Values: values}, Info: map[string]string{"user": whoAmI(), "operation": "import"}}
			if cmd.Flags().Changed("ttl") {
				o.TTL = a.duration("ttl")
				if o.TTL < store.MinTTL || o.TTL > store.MaxTTL {
					return usage("--ttl %v: want %v to %v", o.TTL, store.MinTTL, store.MaxTTL)
				}
			}
			return a.withManager(cmd.Context(), true, func(m *lease.Manager) error { return a.idImport(cmd.Context(), m, args[0], data, o) })
		},
	}
	valuesFlags(cmd.Flags(), &values)
	a.flag(cmd.Flags(), "ttl")
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
			a.say("%d of %d are new in %s", len(made), len(data), pool)
		} else if len(made) > 0 {
			a.say("%d were adopted before that; the same command goes on where it was", len(made))
		}
		return a.idError(err)
	}
	value, names, why := column{title: "VALUE"}, column{title: "NODE"}, column{title: "WHY NOT"}
	for _, d := range refused.Duplicates {
		value.cells = append(value.cells, plain(d.Value))
		names.cells = append(names.cells, plain(strings.Join(d.Holders, ", ")))
		why.cells = append(why.cells, "it can be of one only")
	}
	for _, c := range refused.Conflicts {
		value.cells = append(value.cells, plain(c.Value))
		names.cells = append(names.cells, plain(c.Name))
		why.cells = append(why.cells, plain(c.Why))
	}
	if err := writeTable(a.out, []column{value, names, why}, 0, nil); err != nil {
		return err
	}
	return &exitError{exitNo, errors.New("nothing was adopted: mend the table's rows, and import again")}
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
		Args:              want("[POOL]"),
		ValidArgsFunction: a.completePools,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch given := cmd.Flags().Changed("from-json"); {
			case given && len(args) > 0:
				return usage("POOL and --from-json exclude each other: give one")
			case given:
				data, err := a.readAssigned(path)
				if err != nil {
					return err
				}
				return a.duplicates(identity.DuplicatesIn(data))
			case len(args) == 0:
				return usage("POOL is missing: leasehold id duplicates POOL, or --from-json FILE")
			}
			if err := poolArg(args[0]); err != nil {
				return err
			}
			return a.withStore(cmd.Context(), false, func(st store.Store) error {
				ctx, cancel := clock.WithTimeout(cmd.Context(), a.clk, idLimit)
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
	a.flag(cmd.Flags(), "output")
	return cmd
}

// duplicateView is a value that several have, as it is in JSON.
type duplicateView = api.SharedValue

// duplicates writes what was found.
func (a *app) duplicates(all []identity.Duplicate) error {
	views := make([]duplicateView, len(all))
	value, names := column{title: "VALUE"}, column{title: "OF"}
	for i, d := range all {
		views[i] = duplicateView{Value: d.Value, Names: d.Holders}
		value.cells = append(value.cells, plain(d.Value))
		names.cells = append(names.cells, plain(strings.Join(d.Holders, ", ")))
	}
	switch {
	case a.output() != outputTable:
		if err := writeList(a.out, views, a.output() == outputLines); err != nil {
			return err
		}
	case len(all) == 0:
		a.say("no duplicates")
	default:
		if err := writeTable(a.out, []column{value, names}, 0, nil); err != nil {
			return err
		}
	}
	if len(all) > 0 {
		return &exitError{code: exitNo}
	}
	return nil
}
