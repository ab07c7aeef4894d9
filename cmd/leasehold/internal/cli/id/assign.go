package id

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/hold"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/run"
	"github.com/leasehold/leasehold/flake"
	"github.com/leasehold/leasehold/identity"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// idAssign is what `id assign` was asked to do.
type idAssign struct {
	pool   string
	values identity.Values
	as     string
	value  string
	window time.Duration
	layout flake.Layout // of CMD's ids; the zero one if that isn't said
	ttl    bool         // was given
	run.Options
}

func (a *app) idAssignCommand() *cobra.Command {
	var o idAssign
	var layout string
	cmd := &cobra.Command{
		Use:   "assign POOL [flags] [-- CMD [ARG...]]",
		Short: "Assign a value of a pool, for good or while a command runs",
		Long: "Print a value of POOL that nobody else has. The first use of POOL says what its values are (--range, --names or\n" +
			"--prefixes); after that it has to be the same, or may be left out.\n\n" +
			"With --as the value is NAME's: who says the same NAME again is given the same value. It stays NAME's until it is released\n" +
			"(`leasehold id release`), or until nobody has assigned it for --ttl, a year if that isn't given.\n\n" +
			"With CMD the value is kept while CMD runs, as `leasehold run` keeps a name, and is free when CMD has ended; NAME gets it back\n" +
			"unless another one has got it meanwhile. It takes over what was assigned to NAME before. While all values are held it waits.\n" +
			"CMD finds the value in LEASEHOLD_ID, and LEASEHOLD_NAME, LEASEHOLD_TOKEN, LEASEHOLD_HOLDER, LEASEHOLD_SEQUENCER and\n" +
			"LEASEHOLD_STORE as under `run`. Ids that are made with the value may have times from LEASEHOLD_ID_FLOOR up to LEASEHOLD_ID_CEILING,\n" +
			"in ms since 1970, and no others: that is what keeps them apart from those of the value's holders before and after. While CMD\n" +
			"runs the ceiling rises: the file $LEASEHOLD_ID_WINDOW always has both. If CMD, as the last thing it does, writes a time that is later than\n" +
			"those of all its ids to the file $LEASEHOLD_ID_USED, the value's next ids may follow there at once; else they begin at the ceiling.\n" +
			"With --layout POOL is for ids of that layout, for good: another one is refused, since ids of two layouts can be alike. CMD finds its\n" +
			"specification in LEASEHOLD_ID_LAYOUT.\n\n" +
			"Exit codes: 75 if all values are held, or NAME's is in use elsewhere (see -E); with CMD those of `leasehold run`; 64 for a wrong command line.",
		Example: "  leasehold id assign machines --range 1-254 --as web1\n" +
			"  leasehold id assign machines --as web1 -o json\n" +
			"  leasehold id assign workers --range 0-1023 --as \"$(hostname)\" -- ./worker   # finds $LEASEHOLD_ID\n" +
			"  leasehold id assign nets --prefixes 10.0.0.0/16 --bits 24 --as rack7",
		Args:              idAssignArgs,
		ValidArgsFunction: a.completePools,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.pool, o.Limited, o.ttl = args[0], cmd.Flags().Changed("wait"), cmd.Flags().Changed("ttl")
			if err := o.check(cmd, args[1:]); err != nil {
				return err
			}
			if cmd.Flags().Changed("layout") {
				var err error
				if o.layout, err = cli.LayoutArg(layout); err != nil {
					return err
				}
			}
			if len(args) > 1 {
				return a.idRun(cmd.Context(), args[1:], o)
			}
			return a.idAssign(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	valuesFlags(f, &o.values)
	f.StringVar(&o.as, "as", "", "whose value it is: the same NAME is given the same value")
	f.StringVar(&o.value, "value", "", "assign this value, and no other (without CMD)")
	f.StringVar(&layout, "layout", "", "of which layout the ids are that are made with the values, by name or as a specification")
	_ = cmd.RegisterFlagCompletionFunc("layout", completeLayouts)
	cli.DurationVar(f, &o.window, "window", 0, "how far ahead of now ids that are made with the value may be (default: with CMD its --ttl, else 2m0s)")
	f.BoolVarP(&o.NoWait, "no-wait", "n", false, "don't wait for a value (with CMD)")
	cli.DurationVarP(f, &o.Wait, "wait", "w", 0, "how long to wait for a value at most (with CMD; default: until one is free)")
	f.StringArrayVar(&o.Info, "info", nil, "KEY=VALUE for people to see; may be repeated")
	f.BoolVar(&o.Restart, "restart", false, "after a loss, claim a value again and run CMD again")
	for _, name := range []string{"ttl", "kill-after", "contain", "conflict-exit-code", "keys", "output"} {
		a.Flag(f, name)
	}
	f.Lookup("ttl").Usage = "how long the value stays taken after the last sign of life: with CMD 20s by default, else 8784h"
	return cmd
}

// idAssignArgs explains what is wrong around POOL.
func idAssignArgs(cmd *cobra.Command, args []string) error {
	dash := cmd.ArgsLenAtDash()
	switch {
	case len(args) == 0 || dash == 0:
		return cli.Usage("POOL is missing: leasehold id assign POOL --range 1-254")
	case dash < 0 && len(args) > 1:
		return cli.Usage("%q is one argument too many: leasehold id assign %s; a double dash comes before CMD: leasehold id assign %s -- %s",
			args[1], args[0], args[0], strings.Join(args[1:], " "))
	case dash > 1:
		return cli.Usage("%q is one argument too many before the double dash: leasehold id assign POOL -- CMD", args[1])
	case dash == 1 && len(args) == 1:
		return cli.Usage("CMD is missing after the double dash: leasehold id assign %s -- CMD", args[0])
	}
	return nil
}

func (o idAssign) check(cmd *cobra.Command, argv []string) error {
	if err := cli.PoolArg(o.pool); err != nil {
		return err
	}
	if err := checkValues(o.values); err != nil {
		return err
	}
	if o.as != "" && driver.CheckKey(o.as) != nil {
		return cli.Usage("--as %.60q: want at most 255 bytes of printable text", o.as)
	}
	if cmd.Flags().Changed("as") && o.as == "" {
		return cli.Usage("--as is empty: an unset variable, perhaps")
	}
	if cmd.Flags().Changed("window") && (o.window < time.Second || o.window > 30*24*time.Hour) {
		return cli.Usage("--window %v: want 1s to 720h", o.window)
	}
	for _, flag := range []string{"no-wait", "wait", "restart", "kill-after", "contain"} {
		if cmd.Flags().Changed(flag) && len(argv) == 0 {
			return cli.Usage("--%s: there is no CMD to run: leasehold id assign %s -- CMD", flag, o.pool)
		}
	}
	for _, flag := range []string{"value", "output"} {
		if cmd.Flags().Changed(flag) && len(argv) > 0 {
			return cli.Usage("--%s: it is for an assignment without CMD", flag)
		}
	}
	return nil
}

// options are those of a claim.
func (o idAssign) options() identity.Options {
	return identity.Options{Values: o.values, Layout: o.layout, Name: o.as, Window: o.window}
}

// idAssign assigns a value that no process keeps, and prints it.
func (a *app) idAssign(ctx context.Context, o idAssign) error {
	pairs, err := hold.HolderInfo("", o.Info)
	if err != nil {
		return err
	}
	delete(pairs, "command")
	keys, err := a.Keys()
	if err != nil {
		return err
	}
	assign := identity.AssignOptions{Options: o.options(), Value: o.value, Info: pairs}
	if o.ttl {
		assign.TTL = a.Duration("ttl")
		if assign.TTL < store.MinTTL || assign.TTL > store.MaxTTL {
			return cli.Usage("--ttl %v: want %v to %v", assign.TTL, store.MinTTL, store.MaxTTL)
		}
	}
	return a.WithManager(ctx, true, func(m *lease.Manager) error {
		ctx, cancel := clock.WithTimeout(ctx, a.Clock, idLimit)
		defer cancel()
		got, err := identity.Assign(ctx, m, o.pool, assign)
		if err != nil {
			return a.idError(err)
		}
		if a.Output() == output.Table {
			if _, err := fmt.Fprintln(a.Out, got.Value); err != nil || o.as != "" {
				return err
			}
			a.Say("%s is nobody's by name: the next call is given another one; free it with `leasehold id release %s %s`, or use --as", got.Value, o.pool, got.Value)
			return nil
		}
		v, err := a.idView(ctx, m.Store(), o.pool, identity.Entry{
			Value: got.Value, Number: got.Number, Name: got.Name, Assigned: true, Floor: got.Floor, Ceiling: got.Ceiling, Record: got.Record,
		})
		if err != nil {
			return err
		}
		answer := api.Assigned{Identity: v.Identity, Renewed: got.Renewed}
		if answer.Sequencer, err = cli.SequencerText(keys, got.Sequencer()); err != nil {
			return err
		}
		return output.WriteJSON(a.Out, answer, a.Output() == output.Lines)
	})
}

// idLimit bounds what a command does to a pool: a process that has just died in the middle of an
// assignment is waited for.
const idLimit = time.Minute

// idRun runs CMD while it has a value.
func (a *app) idRun(ctx context.Context, argv []string, o idAssign) error {
	o.Weight = 1 // as without --weight, which is for names that are shared
	j := &run.Job{App: a.App, Name: "a value of " + o.pool, Argv: argv, Opts: o.Options}
	if o.as != "" { // for people: an owner's id is no place for a slash, or for more
		j.Holder = strings.ReplaceAll(o.as, "/", "-")
		j.Holder = j.Holder[:min(len(j.Holder), 60)]
		j.Holder = strings.ToValidUTF8(j.Holder, "")
	}
	w := &idWork{Job: j, a: a, opts: o}
	j.Taking, j.More = w.take, w.variables
	return j.Run(ctx)
}
