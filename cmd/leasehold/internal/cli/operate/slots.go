package operate

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/internal/roster"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/lock"
	"github.com/leasehold/leasehold/store"
)

func (a *app) slotsCommand() *cobra.Command {
	create := false
	cmd := &cobra.Command{
		Use:   "slots NAME N",
		Short: "Change how many may hold a name at a time",
		Long: "Let up to N hold NAME at a time. All that use it follow: those that wait, and those that come with another --slots. What is held\n" +
			"stays held. The exit code is 1 if more than N are held now, or if NAME has no slots yet: --create gives it some.",
		Example:           "  leasehold slots licences 5",
		Args:              cli.Want("NAME", "N"),
		ValidArgsFunction: a.CompleteNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.HeldName(args[0]); err != nil {
				return err
			}
			n, err := strconv.Atoi(args[1])
			if err != nil || n < 1 || n > lock.MaxShares {
				return cli.Usage("N %q: want 1 to %d", args[1], lock.MaxShares)
			}
			return a.WithManager(cmd.Context(), true, func(m *lease.Manager) error { return a.setSlots(cmd.Context(), m, args[0], n, create) })
		},
	}
	cmd.Flags().BoolVar(&create, "create", false, "give slots to a name that has none")
	return cmd
}

func (a *app) setSlots(ctx context.Context, m *lease.Manager, name string, n int, create bool) error {
	state, err := roster.Load(ctx, m.Store(), name)
	if err != nil {
		return err
	}
	if !create && state.Kind != roster.Semaphore {
		return cli.Exit(cli.ExitNo, fmt.Errorf("%s has no slots: `leasehold list` shows the names there are; to give it %s, add --create", name, output.Slots(n)))
	}
	err = lock.SetLimit(ctx, m, name, n)
	other := new(store.KindError)
	switch {
	case err == nil:
		a.Say("%s has %s", name, output.Slots(n))
		return nil
	case errors.As(err, &other):
		return cli.Exit(cli.ExitUsage, other)
	case errors.Is(err, lock.ErrMismatch):
		return cli.Exit(cli.ExitNo, err)
	}
	return err
}
