package look

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/view"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/store"
)

func (a *app) watchCommand() *cobra.Command {
	var all bool
	every := time.Second
	cmd := &cobra.Command{
		Use:   "watch [NAME]",
		Short: "Follow a name, or all names: a line for every change",
		Long: "Write how NAME stands now, and again whenever that changes, until it is interrupted. Renewals are no changes.\n" +
			"Without NAME, all names are looked at once a second (--every), so what comes and goes in between is not seen.\n" +
			"With -o json or jsonl every change is one line.",
		Example:           "  leasehold watch billing\n  leasehold watch -o jsonl | jq -r 'select(.state == \"expired\") | .name'",
		Args:              cli.Want("[NAME]"),
		ValidArgsFunction: a.CompleteNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			if every < minEvery {
				return cli.Usage("--every %v: want at least %v", every, minEvery)
			}
			if len(args) == 1 {
				if err := cli.NameArg(args[0]); err != nil {
					return err
				}
			}
			return a.WithStore(cmd.Context(), false, func(st store.Store) error {
				if len(args) == 1 {
					return a.watchOne(cmd.Context(), st, args[0])
				}
				return a.watchAll(cmd.Context(), st, all, every)
			})
		},
	}
	cmd.Flags().BoolVarP(&all, "all", "a", false, "also names that begin with a dot")
	cli.DurationVar(cmd.Flags(), &every, "every", every, "without NAME: the pause between two looks")
	a.Flag(cmd.Flags(), "output")
	return cmd
}

const minEvery = 10 * time.Millisecond

func (a *app) watchOne(ctx context.Context, st store.Store, name string) error {
	var before view.View
	for {
		rec, err := store.Load(ctx, st, name)
		if err != nil {
			return err
		}
		v, err := a.Full(ctx, st, rec)
		if err != nil {
			return err
		}
		if v.Changed(before) {
			if err := a.writeChange(v); err != nil {
				return err
			}
			before = v
		}
		if err := a.awaitNews(ctx, st, rec, v); err != nil {
			return err
		}
	}
}

// awaitNews blocks until the record has another version, or the hold may have expired; for what is
// kept in several records, or may be, a second at most, as with all names.
func (a *app) awaitNews(ctx context.Context, st store.Store, rec store.Record, v view.View) error {
	if v.Kind == "" && rec.Version != "" && v.Turn == nil {
		return a.awaitChange(ctx, st, rec, v)
	}
	limited, cancel := clock.WithTimeout(ctx, a.Clock, time.Second)
	defer cancel()
	if err := a.awaitChange(limited, st, rec, v); err != nil && (ctx.Err() != nil || limited.Err() == nil) {
		return err
	}
	return nil
}

// awaitChange blocks until the record has another version, or the hold may have expired, which no
// write tells.
func (a *app) awaitChange(ctx context.Context, st store.Store, rec store.Record, v view.View) error {
	wait, cancel := context.WithCancel(ctx)
	if v.ExpiresIn != nil {
		wait, cancel = clock.WithTimeout(ctx, a.Clock, v.LeftFor)
	}
	defer cancel()
	_, err := store.Wait(wait, st, rec.Key, rec.Version)
	if err != nil && wait.Err() != nil && ctx.Err() == nil {
		return nil
	}
	return err
}

func (a *app) watchAll(ctx context.Context, st store.Store, all bool, every time.Duration) error {
	before := map[string]view.View{}
	for {
		views, err := a.views(ctx, st, "", all)
		if err != nil {
			return err
		}
		there := map[string]bool{}
		for _, v := range views {
			there[v.Name] = true
			if !v.Changed(before[v.Name]) {
				continue
			}
			if err := a.writeChange(v); err != nil {
				return err
			}
			before[v.Name] = v
		}
		for name := range before {
			if there[name] {
				continue
			}
			delete(before, name)
			// Swept.
			if err := a.writeChange(view.View{Lease: api.Lease{Name: name, State: view.StateFree}}); err != nil {
				return err
			}
		}
		if err := clock.Sleep(ctx, a.Clock, every); err != nil {
			return err
		}
	}
}

func (a *app) writeChange(v view.View) error {
	now := a.Clock.Wall()
	if a.Output() != output.Table {
		return output.WriteJSON(a.Out, api.Change{Time: now, Lease: v.Lease}, true)
	}
	state := v.Shown()
	if paint := view.Painter(a.Out); paint != nil {
		state = paint("STATE", state, state)
	}
	line := fmt.Sprintf("%s %s %s", now.Local().Format(time.DateTime), v.Name, state)
	switch {
	case v.Kind == view.KindSemaphore || v.Holders != nil:
		line += fmt.Sprintf(": %s (newest token %d)", v.HeldBy(), v.Token)
	case v.Holder != "":
		line += fmt.Sprintf(" by %s (token %d)", v.HeldBy(), v.Token)
	}
	if text := v.Remark(); text != "" {
		line += ": " + text
	}
	_, err := fmt.Fprintln(a.Out, line)
	return err
}
