package main

import (
	"context"
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/lock"
	"github.com/leasehold/leasehold/store"
)

func (a *app) slotsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "slots NAME N",
		Short: "Change how many may hold a name at a time",
		Long: "Let up to N hold NAME at a time, for all who use it from now on: those who wait, or come, with another --slots are told so\n" +
			"and exit. What is held stays held. The exit code is 1 if more than N are held now.",
		Example:           "  leasehold slots licences 5",
		Args:              want("NAME", "N"),
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := heldName(args[0]); err != nil {
				return err
			}
			n, err := strconv.Atoi(args[1])
			if err != nil || n < 1 || n > lock.MaxShares {
				return usage("N %q: want 1 to %d", args[1], lock.MaxShares)
			}
			return a.withStore(cmd.Context(), true, func(st store.Store) error { return a.setSlots(cmd.Context(), st, args[0], n) })
		},
	}
}

func (a *app) setSlots(ctx context.Context, st store.Store, name string, n int) (err error) {
	m, err := lease.NewManager(st, lease.Options{Clock: a.clk})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()
	err = lock.SetLimit(ctx, m, name, n)
	other := new(store.KindError)
	switch {
	case err == nil:
		a.say("%s has %s", name, slotCount(n))
		return nil
	case errors.As(err, &other):
		return &exitError{exitUsage, other}
	case errors.Is(err, lock.ErrMismatch):
		return &exitError{exitNo, err}
	}
	return err
}

func slotCount(n int) string {
	if n == 1 {
		return "1 slot"
	}
	return strconv.Itoa(n) + " slots"
}
