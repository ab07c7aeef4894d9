package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/lease"
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
		Short: "Delete what is of no use any more",
		Long: "Delete the records of names that have been free for --older-than, of sessions that are over, and of locks and elections that\n" +
			"nobody has used for so long. What somebody who is gone has held is freed, and goes with a later sweep. A record that is in\n" +
			"use stays, and so do values of identity pools, pauses that are not over, and what other programs wrote.\n\n" +
			"To see who is gone, it watches what is held for its TTL, --observe at most. A record is deleted only as it was when it was\n" +
			"judged. With it a name forgets its token: the next one is the time of day, so --older-than has to be more than any clock\n" +
			"is ever behind. Once a week, from cron, is often enough; nothing depends on it.",
		Example: "  leasehold sweep --dry-run\n" +
			"  leasehold sweep --older-than 90d --prefix build/",
		Args: want(),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if o.OlderThan, err = parseAge(older); err != nil || o.OlderThan < sweep.LeastOlderThan {
				return usage("--older-than %q: want a duration of an hour at least, such as 30d or 12h: with a clock that is behind by more, a name "+
					"that was deleted would get a lower token than before", older)
			}
			if o.Observe <= 0 {
				return usage("--observe %v: want a duration above 0", o.Observe)
			}
			if lease.Reserved(o.Prefix) {
				return usage("--prefix %q: want the beginning of names, which have no dot there; what is Leasehold's own is swept with all names", o.Prefix)
			}
			if err := driver.CheckPrefix(o.Prefix); err != nil {
				return badName("--prefix", err)
			}
			return a.withStore(cmd.Context(), false, func(st store.Store) error { return a.sweep(cmd.Context(), st, o) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&older, "older-than", older, "for how long a name has to have been free: 30d, 12h; an hour at least")
	f.StringVar(&o.Prefix, "prefix", "", "only names that begin with this, and no sessions")
	f.DurationVar(&o.Observe, "observe", o.Observe, "watch what is held for so long at most, to see who is gone")
	f.BoolVarP(&o.DryRun, "dry-run", "n", false, "change nothing, and say what would be done")
	a.flag(f, "output")
	return cmd
}

// parseAge is [time.ParseDuration] with days.
func parseAge(text string) (time.Duration, error) {
	days, found := strings.CutSuffix(text, "d")
	if !found {
		return time.ParseDuration(text)
	}
	n, err := strconv.ParseUint(days, 10, 16)
	return time.Duration(n) * 24 * time.Hour, err
}

func (a *app) sweep(ctx context.Context, st store.Store, o sweep.Options) error {
	var all []swept
	var failed error
	o.Clock = a.clk
	o.OnFinding = func(f sweep.Finding) {
		v := swept{Key: f.Key, Action: string(f.Action), Reason: f.Why, DryRun: o.DryRun}
		if a.output() == outputLines { // as it happens
			failed = errors.Join(failed, writeJSON(a.out, v, true))
			return
		}
		all = append(all, v)
	}
	report, err := sweep.Run(ctx, st, o)
	switch {
	case a.output() == outputJSON:
		failed = writeList(a.out, all, false)
	case a.output() == outputTable && len(all) > 0:
		failed = writeTable(a.out, sweepColumns(all, o.DryRun), width(a.out), nil)
	}
	a.say("%s", sweepSummary(report, o.DryRun))
	return errors.Join(failed, err)
}

func sweepColumns(all []swept, dry bool) []column {
	name, deed, why := column{title: "NAME", cut: true}, column{title: "ACTION"}, column{title: "WHY", cut: true}
	if dry {
		deed.title = "WOULD BE"
	}
	for _, v := range all {
		name.cells = append(name.cells, v.Key)
		deed.cells = append(deed.cells, v.Action)
		why.cells = append(why.cells, v.Reason)
	}
	return []column{deed, name, why}
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
