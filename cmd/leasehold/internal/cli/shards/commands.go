// Package shards divides a space among workers: it runs a command for each slice that this worker
// owns, and shows and changes who owns what.
package shards

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/shardmap"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/store"
)

// app is one call of the program.
type app struct{ *cli.App }

// Commands are the commands of this group.
func Commands(c *cli.App) []*cobra.Command {
	a := &app{c}
	cmd := &cobra.Command{
		Use:   "shard",
		Short: "Divide a space among workers: each part has one owner",
		Long: "A space is a list of names (partitions, tenants, streams), or the 64-bit hashes of all keys, cut into ranges. Each name, or\n" +
			"range, is a slice, and has one owner at a time, under a fencing token. Workers come and leave, and slices move to them by themselves.",
		Example: "  leasehold shard run orders --shards 0-63 -- ./worker   # one worker for each shard that is this machine's\n" +
			"  leasehold shard status orders                          # who owns what, and what moves",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.Usage("%q is no command of shard: `leasehold shard --help` lists them", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		a.runCommand(), a.statusCommand(), a.listCommand(), a.lookupCommand(), a.historyCommand(),
		a.moveCommand(), a.drainCommand(), a.splitCommand(), a.mergeCommand(), a.addCommand(), a.removeCommand(), a.placeCommand(),
	)
	return []*cobra.Command{cmd}
}

// spaceArg checks a SPACE.
func spaceArg(space string) error {
	if err := shardmap.CheckSpace(space); err != nil {
		return cli.Usage("SPACE: %w", err)
	}
	return nil
}

// withSpace opens the store, and explains a space that isn't there.
func (a *app) withSpace(ctx context.Context, space string, f func(store.Store) error) error {
	if err := spaceArg(space); err != nil {
		return err
	}
	return a.WithStore(ctx, false, func(st store.Store) error { return a.explain(ctx, st, space, f(st)) })
}

// explain says what to do about errors that operators make, with exit code 1: nothing was done.
func (a *app) explain(ctx context.Context, st store.Store, space string, err error) error {
	switch own := new(cli.ExitError); {
	case err == nil, errors.As(err, &own):
		return err
	case errors.Is(err, shard.ErrMismatch):
		return cli.Exit(cli.ExitUsage, err)
	case errors.Is(err, shard.ErrNoWorker), errors.Is(err, shard.ErrManyWorkers):
		return cli.Exit(cli.ExitNo, fmt.Errorf("%w: `leasehold shard status %s` lists them", err, space))
	case errors.Is(err, shard.ErrNoSlice):
		return cli.Exit(cli.ExitNo, fmt.Errorf("%w: `leasehold shard status %s --slices` lists them", err, space))
	case errors.Is(err, store.ErrNotFound):
		return cli.Exit(cli.ExitNo, fmt.Errorf("there is no space %s%s", space, a.nearSpaces(ctx, st)))
	}
	return err
}

// nearSpaces lists the spaces that there are, for people who look for one.
func (a *app) nearSpaces(ctx context.Context, st store.Store) string {
	if others := a.otherSpaces(ctx, st); others != "" {
		return others
	}
	return ", and no other: the first `leasehold shard run SPACE --shards 0-63 -- CMD` makes one; is the store right?"
}

// otherSpaces lists the spaces that there are; "" for none.
func (a *app) otherSpaces(ctx context.Context, st store.Store) string {
	all, err := shard.Spaces(ctx, st)
	if err != nil || len(all) == 0 {
		return ""
	}
	if len(all) > 5 {
		all = append(all[:5], "…")
	}
	return "; there are " + strings.Join(all, ", ")
}

// completeSpaces completes the first argument.
func (a *app) completeSpaces(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.Complete(cmd, func(ctx context.Context, st store.Store) []string {
		all, _ := shard.Spaces(ctx, st) // a shell has no use for the error
		return all
	})
}

// completeWorkers completes a worker of the space that is the first argument.
func (a *app) completeWorkers(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.Complete(cmd, func(ctx context.Context, st store.Store) (names []string) {
		all, _ := shard.Members(ctx, st, args[0]) // as above
		for _, m := range all {
			names = append(names, m.Name)
		}
		return names
	})
}
