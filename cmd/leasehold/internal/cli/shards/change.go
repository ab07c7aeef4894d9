package shards

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/shardmap"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/store"
)

func (a *app) splitCommand() *cobra.Command {
	var at string
	var w waiting
	cmd := &cobra.Command{
		Use:   "split SPACE SLICE",
		Short: "Cut a range of hashes in two, in its middle or --at a hash",
		Long: "Have the owner of SLICE, a range of a hashed space or a hash in it (0x…), cut it in two: in the middle, or so that the hash of --at is\n" +
			"the first of the upper part. The owner stays, drains what it does for the range, and begins again with two slices under higher tokens.",
		Example:           "  leasehold shard split cache 0x8000\n  leasehold shard split cache 4000000000000000-7fffffffffffffff --at 0x5000000000000000",
		Args:              cli.Want("SPACE", "SLICE"),
		ValidArgsFunction: a.completeSpaces,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := w.check(cmd); err != nil {
				return err
			}
			return a.withSpace(cmd.Context(), args[0], func(st store.Store) error { return a.split(cmd.Context(), st, args[0], args[1], at, w) })
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "the first `HASH` of the upper part (default: the middle)")
	w.add(cmd, "it is cut")
	return cmd
}

// hashed reads a SLICE of a space that has to be hashed.
func (a *app) hashed(ctx context.Context, st store.Store, space, slice, what string) (shard.Entry, error) {
	t, hashed, err := a.target(ctx, st, space, slice)
	if err == nil && !hashed {
		err = cli.Usage("%s is a space of names, which have no parts: %s is for ranges of hashes; `leasehold shard add` and `remove` change names", space, what)
	}
	if err != nil {
		return shard.Entry{}, err
	}
	return shard.LookupHash(ctx, st, space, t.hash)
}

func (a *app) split(ctx context.Context, st store.Store, space, slice, at string, w waiting) error {
	e, err := a.hashed(ctx, st, space, slice, "split")
	if err != nil {
		return err
	}
	cut := e.From + (e.To-e.From)/2 + 1
	if at != "" {
		if cut, err = shardmap.ParseHash(at); err != nil {
			return cli.Usage("--at: %w", err)
		}
	}
	if cut <= e.From || cut > e.To {
		return cli.Exit(cli.ExitNo, fmt.Errorf("--at %016x: want a hash inside of %s, and not its first", cut, e.ID()))
	}
	if err := shard.RequestSplit(ctx, st, space, cut); err != nil {
		return cli.Exit(cli.ExitNo, err)
	}
	return a.awaitCut(ctx, st, space, cut, w, fmt.Sprintf("%s is to be cut at %016x", e.ID(), cut), func(now shard.Entry) bool { return now.From == cut })
}

// awaitCut waits until the slice of a hash is as wanted.
func (a *app) awaitCut(ctx context.Context, st store.Store, space string, hash uint64, w waiting, ordered string, ok func(shard.Entry) bool) error {
	if w.noWait {
		a.Say("%s", ordered)
		return nil
	}
	limited, end := w.ctx(ctx, a)
	defer end()
	e, err := shard.Await(limited, st, space, "", hash, ok)
	if err != nil {
		return w.late(err, "it is not done: %s; the order stands", ordered)
	}
	a.Say("there is %s now (token %d)", e.ID(), e.Token)
	return nil
}

func (a *app) mergeCommand() *cobra.Command {
	var w waiting
	cmd := &cobra.Command{
		Use:   "merge SPACE SLICE",
		Short: "Join a range of hashes with the one after it",
		Long: "Have the owner of SLICE, a range of a hashed space or a hash in it (0x…), join it with the range after it, which comes to the same owner\n" +
			"first. The joined slice has a higher token than both. Ranges of two records of the map don't join: the exit code is 1 then.",
		Example:           "  leasehold shard merge cache 4000000000000000-4fffffffffffffff",
		Args:              cli.Want("SPACE", "SLICE"),
		ValidArgsFunction: a.completeSpaces,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := w.check(cmd); err != nil {
				return err
			}
			return a.withSpace(cmd.Context(), args[0], func(st store.Store) error { return a.merge(cmd.Context(), st, args[0], args[1], w) })
		},
	}
	w.add(cmd, "they are one")
	return cmd
}

func (a *app) merge(ctx context.Context, st store.Store, space, slice string, w waiting) error {
	e, err := a.hashed(ctx, st, space, slice, "merge")
	if err != nil {
		return err
	}
	if err := shard.RequestMerge(ctx, st, space, e.From); err != nil {
		return cli.Exit(cli.ExitNo, err)
	}
	return a.awaitCut(ctx, st, space, e.From, w, e.ID()+" is to be joined with the range after it", func(now shard.Entry) bool { return now.To > e.To })
}

func (a *app) addCommand() *cobra.Command {
	return a.namesCommand("add", "Add names to a space", "Names that are there stay as they are.", shard.AddNames)
}

func (a *app) removeCommand() *cobra.Command {
	return a.namesCommand("remove", "Remove names from a space",
		"The owner of a name drains it first. A worker that starts adds the names of its --shards again.", shard.RemoveNames)
}

func (a *app) namesCommand(name, short, more string, f func(context.Context, store.Store, string, ...string) error) *cobra.Command {
	return &cobra.Command{
		Use:               name + " SPACE NAMES",
		Short:             short,
		Long:              short + ": names and ranges with commas between them, as in 64-127 or east,west. " + more,
		Example:           "  leasehold shard " + name + " orders 64-127",
		Args:              cli.Want("SPACE", "NAMES"),
		ValidArgsFunction: a.completeSpaces,
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := parseNames("NAMES", args[1])
			if err != nil {
				return err
			}
			return a.withSpace(cmd.Context(), args[0], func(st store.Store) error {
				err := f(cmd.Context(), st, args[0], names...)
				if errors.Is(err, shard.ErrMismatch) {
					return cli.Usage("%s is a space of hashes: it has no names; `leasehold shard split` and `merge` change its ranges", args[0])
				}
				return err
			})
		},
	}
}

func (a *app) placeCommand() *cobra.Command {
	var most int
	var zones bool
	var pins []string
	cmd := &cobra.Command{
		Use:   "place SPACE",
		Short: "Say which worker may own which slices",
		Long: "Change the placement of SPACE: what isn't given stays as it is. The assigner follows within a third of the TTL.\n\n" +
			"A pin is PREFIX:KIND=VALUE[,KIND=VALUE…]: the slices whose names begin with PREFIX are owned by workers with that zone, worker\n" +
			"(name or address) or label.KEY alone, and by nobody if there are none. The first pin that fits a name counts. --pin none removes all.",
		Example: "  leasehold shard place orders --max 20 --spread-zones\n" +
			"  leasehold shard place tenants --pin eu-:zone=west --pin big:label.size=large\n" +
			"  leasehold shard place tenants --pin none",
		Args:              cli.Want("SPACE"),
		ValidArgsFunction: a.completeSpaces,
		RunE: func(cmd *cobra.Command, args []string) error {
			f := cmd.Flags()
			if !f.Changed("max") && !f.Changed("spread-zones") && !f.Changed("pin") {
				return cli.Usage("nothing is to be changed: give --max, --spread-zones or --pin; `leasehold shard status %s` shows the placement", args[0])
			}
			if most < 0 {
				return cli.Usage("--max %d: want a number above 0, or 0 for any number", most)
			}
			parsed, err := parsePins(pins)
			if err != nil {
				return err
			}
			return a.withSpace(cmd.Context(), args[0], func(st store.Store) error {
				info, err := shard.Describe(cmd.Context(), st, args[0])
				if err != nil {
					return err
				}
				p := info.Placement
				if f.Changed("max") {
					p.Max = most
				}
				if f.Changed("spread-zones") {
					p.Zones = zones
				}
				if f.Changed("pin") {
					p.Pins = parsed
				}
				return shard.SetPlacement(cmd.Context(), st, args[0], p)
			})
		},
	}
	cmd.Flags().IntVar(&most, "max", 0, "how many slices a worker owns at most; 0 is any number")
	cmd.Flags().BoolVar(&zones, "spread-zones", false, "have each zone own its share, however many workers it has")
	cmd.Flags().StringArrayVar(&pins, "pin", nil, "PREFIX:KIND=VALUE: who may own the slices of a prefix; may be repeated; none removes all")
	return cmd
}

// parsePins reads PREFIX:KIND=VALUE[,…].
func parsePins(texts []string) ([]shard.Pin, error) {
	if len(texts) == 1 && texts[0] == "none" {
		return nil, nil
	}
	var all []shard.Pin
	for _, text := range texts {
		i := pinStart(text)
		if i < 0 {
			return nil, cli.Usage("--pin %q: want PREFIX:zone=ZONE, PREFIX:worker=NAME or PREFIX:label.KEY=VALUE", text)
		}
		pin := shard.Pin{Prefix: text[:i]}
		for part := range strings.SplitSeq(text[i+1:], ",") {
			kind, value, ok := strings.Cut(part, "=")
			label, isLabel := strings.CutPrefix(kind, "label.")
			switch {
			case !ok || value == "" || isLabel && label == "":
				return nil, cli.Usage("--pin %q: %q: want zone=ZONE, worker=NAME or label.KEY=VALUE", text, part)
			case kind == "zone":
				pin.Zone = value
			case kind == "worker":
				pin.Worker = value
			case isLabel:
				if pin.Labels == nil {
					pin.Labels = map[string]string{}
				}
				pin.Labels[label] = value
			default:
				return nil, cli.Usage("--pin %q: %q: want zone=ZONE, worker=NAME or label.KEY=VALUE", text, part)
			}
		}
		all = append(all, pin)
	}
	return all, nil
}

// pinStart returns where the colon behind PREFIX is: names and addresses may have some.
func pinStart(text string) int {
	for i := range text {
		for _, kind := range []string{":zone=", ":worker=", ":label."} {
			if strings.HasPrefix(text[i:], kind) {
				return i
			}
		}
	}
	return -1
}

// pinText is a pin as --pin takes it.
func pinText(p api.ShardPin) string {
	var parts []string
	if p.Zone != "" {
		parts = append(parts, "zone="+p.Zone)
	}
	if p.Worker != "" {
		parts = append(parts, "worker="+p.Worker)
	}
	for _, k := range slices.Sorted(maps.Keys(p.Labels)) {
		parts = append(parts, "label."+k+"="+p.Labels[k])
	}
	return p.Prefix + ":" + strings.Join(parts, ",")
}
