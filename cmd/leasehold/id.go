package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/identity"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

func (a *app) idCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "id",
		Short: "Assign values out of a pool, and make ids",
		Long: "Give each machine or program a value of its own out of a pool: a number, a name, a network (assign, list, release, reset, prune,\n" +
			"import, duplicates, pool). And make ids out of the time and such a number, and read them (next, decode, layouts).",
		Example: "  leasehold id assign machines --range 1-254 --as web1   # a number for web1, the same one each time\n" +
			"  leasehold id list machines                             # who has which",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknownSubcommand(cmd, args[0])
			}
			return cmd.Help()
		},
	}
	cmd.AddCommand(a.idAssignCommand(), a.idListCommand(), a.idReleaseCommand(), a.idResetCommand(), a.idPruneCommand(), a.idImportCommand(),
		a.idDuplicatesCommand(), a.idPoolCommand(), a.idNextCommand(), a.idDecodeCommand(), a.idLayoutsCommand())
	return cmd
}

// unknownSubcommand explains a first argument that is no command of cmd.
func unknownSubcommand(cmd *cobra.Command, name string) error {
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(name); len(near) > 0 {
		return usage("%q is no command of %s: did you mean %s?", name, cmd.Name(), near[0])
	}
	return usage("%q is no command of %s: `%s --help` lists them", name, cmd.Name(), cmd.CommandPath())
}

// valuesFlags are the flags that say what the values of a pool are.
func valuesFlags(f *pflag.FlagSet, v *identity.Values) {
	f.StringVar(&v.Range, "range", "", "the values are integers, both ends included: 1-254")
	f.StringSliceVar(&v.Names, "names", nil, "the values are these names: red,green,blue")
	f.StringVar(&v.Prefix, "prefixes", "", "the values are networks, cut out of this one: 10.0.0.0/16 (with --bits)")
	f.IntVar(&v.Bits, "bits", 0, "how long the prefix of each network is: 24")
}

// checkValues explains what is wrong with them, in the words of the flags.
func checkValues(v identity.Values) error {
	given := 0
	for _, is := range []bool{v.Range != "", len(v.Names) > 0, v.Prefix != "" || v.Bits != 0} {
		if is {
			given++
		}
	}
	switch {
	case given > 1:
		return usage("--range, --names and --prefixes exclude each other: give one")
	case v.Prefix != "" && v.Bits == 0:
		return usage("--bits is missing: how long the prefix of each network out of %s is", v.Prefix)
	case v.Prefix == "" && v.Bits != 0:
		return usage("--bits %d: --prefixes is missing: the network that is to be cut", v.Bits)
	}
	if err := v.Check(); err != nil {
		return &exitError{exitUsage, err}
	}
	return nil
}

// poolArg checks a POOL.
func poolArg(pool string) error {
	if err := driver.CheckKey(pool); err != nil {
		return badName("POOL", err)
	}
	return nil
}

// noPool explains that a pool that is only looked at isn't there.
func noPool(pool string, err error) error {
	if errors.Is(err, identity.ErrUndeclared) {
		return &exitError{exitNo, fmt.Errorf("there is no pool %s: `leasehold id list` lists the pools", pool)}
	}
	return err
}

// idError gives the exit code of a claim or an assignment that failed.
func (a *app) idError(err error) error {
	var (
		own      *exitError
		mismatch *identity.MismatchError
		layout   *identity.LayoutError
		held     *lease.HeldError
		outside  *identity.OutsideError
		other    *identity.OtherValueError
	)
	code, _ := strconv.Atoi(a.values.Get("conflict-exit-code")) // checked
	switch {
	case err == nil || errors.As(err, &own):
		return err
	case errors.Is(err, identity.ErrUndeclared):
		return usage("%w: --range 1-254, or --names red,blue, or --prefixes 10.0.0.0/16 --bits 24", err)
	case errors.As(err, &mismatch):
		return &exitError{exitUsage, mismatch}
	case errors.As(err, &layout):
		return &exitError{exitUsage, layout}
	case errors.As(err, &outside):
		return &exitError{exitUsage, outside}
	case errors.Is(err, store.ErrInvalid), errors.Is(err, store.ErrKind):
		return &exitError{exitUsage, err}
	case errors.As(err, &held):
		now := a.clk.Wall()
		return &exitError{code, fmt.Errorf("%s is held by %s since %s (%s)", held.Key, held.Owner, at(held.Since, now), ago(held.Since, now))}
	case errors.Is(err, identity.ErrExhausted), errors.Is(err, identity.ErrAhead), errors.As(err, &other):
		return &exitError{code, err}
	case errors.Is(err, lease.ErrNotCurrent):
		return &exitError{exitNo, err}
	}
	return err
}

// idView is a value that somebody has: in JSON an identity.
type idView struct {
	api.Identity

	expiresIn time.Duration
}

// idView returns the view of an entry.
func (a *app) idView(ctx context.Context, st store.Store, pool string, e identity.Entry) (idView, error) {
	v, err := a.look(ctx, st, e.Record)
	if err != nil {
		return idView{}, err
	}
	shown := idView{Identity: api.IdentityOf(pool, e), expiresIn: v.expiresIn}
	shown.State, shown.TTL, shown.ExpiresIn, shown.Info = v.State, v.TTL, v.ExpiresIn, v.Info
	return shown, nil
}

// completePools offers the pools that there are.
func (a *app) completePools(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 || a.configure(cmd) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := clock.WithTimeout(cmd.Context(), a.clk, completeTimeout)
	defer cancel()
	var names []string
	_ = a.withStore(ctx, false, func(st store.Store) error { // a shell has no use for the error
		pools, err := identity.Pools(ctx, st)
		for _, p := range pools {
			names = append(names, p.Pool)
		}
		return err
	})
	return names, cobra.ShellCompDirectiveNoFileComp
}
