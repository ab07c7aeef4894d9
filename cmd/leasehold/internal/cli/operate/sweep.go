package operate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/durations"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/sweep"
)

// swept is what became of a record, as it is in JSON.
type swept = api.SweepFinding

func (a *app) sweepCommand() *cobra.Command {
	var o sweep.Options
	older := "30d"
	o.Observe = sweep.DefaultObserve
	cmd := &cobra.Command{
		Use:   "sweep",
		Short: "Delete records that nobody uses any more",
		Long: "Delete the records of names that have been free for --older-than, of sessions that are over, and of locks and elections that\n" +
			"nobody has used for that time. What a dead holder held is freed, and goes with a later sweep. A record that is in\n" +
			"use stays, and so do values of identity pools, pauses that are not over, and what other programs wrote.\n\n" +
			"To see who is gone, it watches what is held for its TTL, --observe at most. A record is deleted only as it was when it was\n" +
			"judged. Deleting a record also deletes the name's last token: the next one is the time of day. So --older-than has to be\n" +
			"more than any clock is ever behind. Once a week, from cron, is often enough; nothing depends on it.",
		Example: "  leasehold sweep --dry-run\n" +
			"  leasehold sweep --older-than 90d --prefix build/",
		Args: cli.Want(),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.OlderThan, err = durations.Parse(older); err != nil || o.OlderThan < sweep.LeastOlderThan {
				return cli.Usage("--older-than %q: want a duration of an hour at least, such as 30d or 12h: with a clock that is behind by more, a name "+
					"that was deleted would get a lower token than before", older)
			}
			if o.Observe <= 0 {
				return cli.Usage("--observe %v: want a duration above 0", o.Observe)
			}
			if keyspace.Reserved(o.Prefix) {
				return cli.Usage("--prefix %q: want the beginning of names, which have no dot there; what is Leasehold's own is swept with all names", o.Prefix)
			}
			if err := driver.CheckPrefix(o.Prefix); err != nil {
				return cli.BadName("--prefix", err)
			}
			return a.WithStore(cmd.Context(), false, func(st store.Store) error { return a.sweep(cmd.Context(), st, o) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&older, "older-than", older, "for how long a name has to have been free: 30d, 12h; an hour at least")
	f.StringVar(&o.Prefix, "prefix", "", "only names that begin with this, and no sessions")
	cli.DurationVar(f, &o.Observe, "observe", o.Observe, "how long to watch what is held at most, to see who is gone")
	f.BoolVarP(&o.DryRun, "dry-run", "n", false, "change nothing, and say what would be done")
	a.Flag(f, "output")
	return cmd
}

func (a *app) sweep(ctx context.Context, st store.Store, o sweep.Options) error {
	var all []swept
	var failed error
	o.Clock = a.Clock
	o.OnFinding = func(f sweep.Finding) {
		v := swept{Key: f.Key, Action: string(f.Action), Reason: f.Why, DryRun: o.DryRun}
		if a.Output() == output.Lines { // as it happens
			failed = errors.Join(failed, output.WriteJSON(a.Out, v, true))
			return
		}
		all = append(all, v)
	}
	report, err := sweep.Run(ctx, st, o)
	switch {
	case a.Output() == output.JSON:
		failed = output.WriteList(a.Out, all, false)
	case a.Output() == output.Table && len(all) > 0:
		failed = output.WriteTable(a.Out, sweepColumns(all, o.DryRun), output.Width(a.Out), nil)
	}
	a.Say("%s", sweepSummary(report, o.DryRun))
	return errors.Join(failed, err)
}

func sweepColumns(all []swept, dry bool) []output.Column {
	name, deed, why := output.Column{Title: "NAME", Cut: true}, output.Column{Title: "ACTION"}, output.Column{Title: "WHY", Cut: true}
	if dry {
		deed.Title = "WOULD BE"
	}
	for _, v := range all {
		name.Cells = append(name.Cells, v.Key)
		deed.Cells = append(deed.Cells, v.Action)
		why.Cells = append(why.Cells, v.Reason)
	}
	return []output.Column{deed, name, why}
}

// sweepSummary is the last word.
func sweepSummary(r sweep.Report, dry bool) string {
	var parts []string
	for _, deed := range []sweep.Action{sweep.Deleted, sweep.Freed, sweep.Closed, sweep.Pruned, sweep.Kept} {
		if n := r.Actions[deed]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, deed))
		}
	}
	if r.Overtaken > 0 {
		parts = append(parts, fmt.Sprintf("%d changed by others in between", r.Overtaken))
	}
	if r.Unsettled > 0 {
		parts = append(parts, fmt.Sprintf("%d held for longer than --observe, and left alone", r.Unsettled))
	}
	if len(parts) == 0 {
		parts = []string{"nothing to do"}
	}
	text := fmt.Sprintf("%d records: %s", r.Records, strings.Join(parts, ", "))
	if dry {
		text += "; this was a dry run, and nothing was changed"
	}
	return text
}
