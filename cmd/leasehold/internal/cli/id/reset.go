package id

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/identity"
	"github.com/leasehold/leasehold/lease"
)

// idReset is what `id reset` was asked to do.
type idReset struct {
	pool   string
	values []string // all that are late if there are none
	ahead  time.Duration
	yes    bool
}

func (a *app) idResetCommand() *cobra.Command {
	var o idReset
	cmd := &cobra.Command{
		Use:   "reset POOL [VALUE...]",
		Short: "Free values that a clock which was ahead has made useless",
		Long: "A machine whose clock is an hour ahead leaves values of POOL with which nobody else may make ids for an hour. Have their next\n" +
			"windows begin now; without VALUE, those of all that begin later than --ahead from now. Values that somebody has are left alone.\n\n" +
			"It is dangerous: ids that were made with these values may be dated up to the time that is shown, and ids that are made from now on may\n" +
			"be the same. Use it only if no such ids were kept, and no process that had one of these values still runs. Else wait, or\n" +
			"use another pool.\n\n" +
			"The exit code is 1 if a value was left alone.",
		Example: "  leasehold id reset machines\n" +
			"  leasehold id reset machines 17 18 --yes",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completePools,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cli.Usage("POOL is missing: leasehold id reset POOL [VALUE...]")
			}
			o.pool, o.values = args[0], args[1:]
			if err := cli.PoolArg(o.pool); err != nil {
				return err
			}
			if o.ahead < 0 {
				return cli.Usage("--ahead %v: want a duration that is not negative", o.ahead)
			}
			return a.WithManager(cmd.Context(), false, func(m *lease.Manager) error { return a.idReset(cmd.Context(), m, o) })
		},
	}
	f := cmd.Flags()
	cli.DurationVar(f, &o.ahead, "ahead", 2*time.Minute, "leave values alone that begin within this time from now")
	f.BoolVarP(&o.yes, "yes", "y", false, "don't ask")
	return cmd
}

func (a *app) idReset(ctx context.Context, m *lease.Manager, o idReset) error {
	late, err := a.lateOf(ctx, m, o)
	if err != nil {
		return err
	}
	if len(late) == 0 {
		a.Say("no value of %s begins later than %v from now", o.pool, o.ahead)
		return nil
	}
	a.sayLate(o.pool, late)
	if !o.yes {
		if err := a.Confirm(ctx, fmt.Sprintf("reset %d of %s", len(late), o.pool), o.pool+" is left alone", "add --yes"); err != nil {
			return err
		}
	}
	ctx, cancel := clock.WithTimeout(ctx, a.Clock, idLimit)
	defer cancel()
	left := 0
	for _, v := range late {
		err := identity.Reset(ctx, m, o.pool, v)
		var held *lease.HeldError
		switch {
		case err == nil:
			a.Say("%s of %s begins now", v.Value, o.pool)
			continue
		case errors.As(err, &held):
			a.Say("%s of %s is left alone: %s has it", v.Value, o.pool, held.Holder)
		case errors.Is(err, identity.ErrWindow):
			a.Say("%s of %s is left alone: somebody has had it since", v.Value, o.pool)
		default:
			return a.idError(err)
		}
		left++
	}
	if left > 0 {
		return cli.Exit(cli.ExitNo, fmt.Errorf("%d of %d values of %s are left alone", left, len(late), o.pool))
	}
	return nil
}

// lateOf returns the values to reset.
func (a *app) lateOf(ctx context.Context, m *lease.Manager, o idReset) ([]identity.Late, error) {
	ctx, cancel := clock.WithTimeout(ctx, a.Clock, idLimit)
	defer cancel()
	late, err := identity.LateValues(ctx, m.Store(), o.pool, a.Clock.Wall().Add(o.ahead))
	if err != nil || len(o.values) == 0 {
		return late, noPool(o.pool, err)
	}
	var chosen []identity.Late
	for _, value := range o.values {
		i := slices.IndexFunc(late, func(v identity.Late) bool { return v.Value == value })
		if i < 0 {
			return nil, cli.Exit(cli.ExitNo, fmt.Errorf("%s is no value of %s that begins later than %v from now: nothing is reset", value, o.pool, o.ahead))
		}
		chosen = append(chosen, late[i])
	}
	return chosen, nil
}

// sayLate says which values are late, and what a reset means.
func (a *app) sayLate(pool string, late []identity.Late) {
	now, held := a.Clock.Wall(), 0
	a.Say("the clock here says %s; values of %s with which no ids can be made yet:", now.UTC().Format(time.RFC3339), pool)
	for _, v := range late {
		by := ""
		if v.Record.Owner != "" {
			by = ", held by " + v.Record.Owner
			held++
		}
		a.Say("  %s: from %s on, in %s%s", v.Value, v.Begins.UTC().Format(time.RFC3339), output.Roughly(v.Begins.Sub(now)), by)
	}
	if held > 0 {
		a.Say("%d of them have holders: perhaps it is the clock here that is wrong", held)
	}
	a.Say("ids that were made with them may be dated up to then, and ids that are made after a reset may be the same")
}
