package id

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/identity"
	"github.com/leasehold/leasehold/store"
)

func (a *app) idReleaseCommand() *cobra.Command {
	var o identity.ReleaseOptions
	var token, used string
	cmd := &cobra.Command{
		Use:   "release POOL (VALUE | --as NAME)",
		Short: "Give an assigned value back",
		Long: "Free VALUE of POOL, or the value that NAME has, which was assigned without CMD. The caller vouches that nobody uses it any\n" +
			"more. With both, VALUE has to be NAME's. What a running process keeps is free when that has ended; with --token, as `leasehold id list -o\n" +
			"json` shows it, it is freed at once, and the process loses it.\n\n" +
			"Ids that are made with the value from now on are later than its window's end, unless --used says from when on its user has made none. The exit code\n" +
			"is 1 if nobody has the value, or somebody else.",
		Example: "  leasehold id release machines 17\n" +
			"  leasehold id release machines --as web1 --used now",
		Args:              cli.Want("POOL", "[VALUE]"),
		ValidArgsFunction: a.completePools,
		RunE: func(cmd *cobra.Command, args []string) error {
			pool, value := args[0], ""
			if len(args) > 1 {
				value = args[1]
			}
			if err := a.checkRelease(cmd, &o, pool, value, token, used); err != nil {
				return err
			}
			return a.WithStore(cmd.Context(), false, func(st store.Store) error { return a.idRelease(cmd.Context(), st, pool, value, o) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Name, "as", "", "whose value it is")
	f.StringVar(&token, "token", "", "the token of the hold to end, which has to be named if a process keeps it")
	f.StringVar(&used, "used", "", "from when on no id was made with the value: RFC 3339, or now (default: not known)")
	return cmd
}

func (a *app) checkRelease(cmd *cobra.Command, o *identity.ReleaseOptions, pool, value, token, used string) (err error) {
	if err := cli.PoolArg(pool); err != nil {
		return err
	}
	if cmd.Flags().Changed("as") && o.Name == "" {
		return cli.Usage("--as is empty: an unset variable, perhaps")
	}
	if value == "" && o.Name == "" {
		return cli.Usage("VALUE is missing: leasehold id release %s VALUE, or --as NAME; `leasehold id list %s` lists them", pool, pool)
	}
	if token != "" {
		if o.Token, err = fence.ParseToken(token); err != nil {
			return cli.Usage("--token: %w", err)
		}
	}
	switch used {
	case "":
	case "now":
		o.Used = a.Clock.Wall()
	default:
		if o.Used, err = time.Parse(time.RFC3339Nano, used); err != nil {
			return cli.Usage("--used %q: want a time such as 2026-01-02T15:04:05Z, or now", used)
		}
	}
	o.By = cli.WhoAmI()
	return nil
}

func (a *app) idRelease(ctx context.Context, st store.Store, pool, value string, o identity.ReleaseOptions) error {
	ctx, cancel := clock.WithTimeout(ctx, a.Clock, idLimit)
	defer cancel()
	asked := value
	o.Value, o.Clock = value, a.Clock
	value, err := identity.Release(ctx, st, pool, o)
	var kept *identity.NotAssignedError
	var stale *fence.StaleError
	switch {
	case err == nil:
		a.Say("%s of %s is free", value, pool)
		return nil
	case errors.Is(err, identity.ErrUndeclared):
		return noPool(pool, err)
	case errors.As(err, &kept):
		return cli.Exit(cli.ExitNo, fmt.Errorf("%s of %s is kept by %s, which runs: it is free when that has ended; --token %d ends its hold at once",
			kept.Value, pool, kept.Record.Owner, kept.Record.Token))
	case !errors.As(err, &stale):
		return a.idError(err)
	case asked == "" && stale.Holder == "":
		return cli.Exit(cli.ExitNo, fmt.Errorf("%s has no value of %s", o.Name, pool))
	case stale.Holder == "":
		return cli.Exit(cli.ExitNo, fmt.Errorf("nobody has %s of %s", value, pool))
	case o.Token != 0 && o.Token != stale.Current:
		return cli.Exit(cli.ExitNo, fmt.Errorf("%s of %s is held by %s under token %d, not %d", value, pool, stale.Holder, stale.Current, o.Token))
	}
	return cli.Exit(cli.ExitNo, fmt.Errorf("%s of %s is not %s's: %s has it", value, pool, o.Name, stale.Holder))
}
