package look

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/view"
	"github.com/leasehold/leasehold/store"
)

func (a *app) showCommand() *cobra.Command {
	var observe bool
	cmd := &cobra.Command{
		Use:   "show NAME",
		Short: "Show who holds a name, under which token",
		Long: "Show who holds NAME, under which token, and how that stands. On most stores one look can't tell a live holder from one that has\n" +
			"died: with --observe it looks until there is a sign of life, or there was none for a whole TTL. What it saw is kept for the next\n" +
			"look, so that without --observe, too, a name is shown as expired a TTL after somebody first looked.",
		Example:           "  leasehold show billing\n  leasehold show billing --observe\n  leasehold show billing -o json | jq -r .token",
		Args:              cli.Want("NAME"),
		ValidArgsFunction: a.CompleteNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withView(cmd.Context(), args[0], observe, func(v view.View) error {
				if a.Output() != output.Table {
					return output.WriteJSON(a.Out, v, a.Output() == output.Lines)
				}
				return a.showTable(v)
			})
		},
	}
	cmd.Flags().BoolVar(&observe, "observe", false, "look until the holder gives a sign of life, or is known to be dead: up to its TTL")
	a.Flag(cmd.Flags(), "output")
	return cmd
}

// sign blocks until the holder of a name gives a sign of life, or is known to be dead. It returns
// the record as it is then.
func (a *app) sign(ctx context.Context, st store.Store, rec store.Record) (store.Record, error) {
	o := a.Observer(st)
	first, err := o.Of(ctx, rec)
	for s := first; err == nil && s.ExpiresIn > 0 && s.Token == first.Token && s.Silent >= first.Silent && ctx.Err() == nil; {
		first = s
		// ctx is looked at above.
		_ = clock.Sleep(ctx, a.Clock, max(min(s.ExpiresIn, s.TTL/20), signPause))
		if s, err = o.Status(ctx, rec.Key); err == nil {
			rec = s.Record
		}
	}
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return rec, err
}

// signPause is the shortest pause between two looks for a sign of life.
const signPause = 50 * time.Millisecond

// withView calls f with the view of a name that has been held at some time. observe waits for a
// sign of life.
func (a *app) withView(ctx context.Context, name string, observe bool, f func(view.View) error) error {
	if err := cli.NameArg(name); err != nil {
		return err
	}
	return a.WithStore(ctx, false, func(st store.Store) error {
		rec, err := store.Load(ctx, st, name)
		if err != nil {
			return err
		}
		if observe {
			if rec, err = a.sign(ctx, st, rec); err != nil {
				return err
			}
		}
		v, err := a.Full(ctx, st, rec)
		if err != nil {
			return err
		}
		a.KeepBook()
		if rec.Version == "" && v.Kind == "" && v.Turn == nil {
			return cli.Exit(cli.ExitNo, fmt.Errorf("nobody has ever held %s: `leasehold list` shows what there is", name))
		}
		return f(v)
	})
}

func (a *app) showTable(v view.View) error {
	now := a.Clock.Wall()
	since := "-"
	if v.Since != nil {
		since = fmt.Sprintf("%s (%s)", output.At(*v.Since, now), output.Ago(*v.Since, now))
	}
	rows := [][2]string{{"name", v.Name}, {"state", v.Shown()}, {"holder", v.HeldBy()}, {"token", v.Token.String()}, {"since", since}}
	if v.Holder != "" && v.Holders == nil {
		rows = append(rows, [2]string{"ttl", v.HoldTTL().String()})
	}
	if v.SilentFor > 0 {
		rows = append(rows, [2]string{"renewed", "no sign of life for " + output.Roughly(v.SilentFor)})
	}
	if v.ExpiresIn != nil {
		rows = append(rows, [2]string{"expires", "in " + output.Roughly(v.LeftFor) + " at most, unless it is renewed"})
	}
	if text := v.Remark(); text != "" {
		rows = append(rows, [2]string{"note", text})
	}
	if v.Session != "" {
		rows = append(rows, [2]string{"session", v.Session})
	}
	for _, k := range slices.Sorted(maps.Keys(v.Info)) {
		rows = append(rows, [2]string{"info." + output.Plain(k), output.Plain(v.Info[k])})
	}
	rows = append(rows, v.Rows(now)...)
	widest := 0
	for _, r := range rows {
		widest = max(widest, utf8.RuneCountInString(r[0]))
	}
	for _, r := range rows {
		if _, err := fmt.Fprintf(a.Out, "%-*s  %s\n", widest, r[0], r[1]); err != nil {
			return err
		}
	}
	return nil
}
