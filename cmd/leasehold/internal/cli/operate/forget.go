package operate

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/lock"
	"github.com/leasehold/leasehold/store"
)

func (a *app) forgetCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "forget NAME",
		Short: "Let a name that nobody uses be used as something else",
		Long: "Forget that NAME has slots, is shared or is an election, and how many slots were set: its next user says. Its tokens continue to rise.\n" +
			"The exit code is 1 if NAME is in use, or unknown. A pool of identities keeps its name.",
		Example:           "  leasehold forget licences",
		Args:              cli.Want("NAME"),
		ValidArgsFunction: a.CompleteNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.HeldName(args[0]); err != nil {
				return err
			}
			return a.WithManager(cmd.Context(), false, func(m *lease.Manager) error { return a.forget(cmd.Context(), m, args[0]) })
		},
	}
}

func (a *app) forget(ctx context.Context, m *lease.Manager, name string) error {
	used := new(store.KindError)
	switch err := lock.Forget(ctx, m, name); {
	case errors.Is(err, store.ErrNotFound):
		return cli.Exit(cli.ExitNo, fmt.Errorf("no such name: %s", name))
	case errors.As(err, &used) && used.Kind == store.KindPool:
		return cli.Exit(cli.ExitNo, fmt.Errorf("%s is a pool of identities, which keeps its name: `leasehold id list %s` lists its values", name, name))
	case errors.As(err, &used):
		return cli.Exit(cli.ExitNo, fmt.Errorf("%s is in use: `leasehold show %s` says by whom; a process that has died counts until its TTL has passed", name, name))
	case err != nil:
		return err
	}
	a.Say("%s is free to become anything", name)
	return nil
}
