package shards

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/shardview"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// statusOptions are the flags of shard status.
type statusOptions struct {
	slices bool
	after  string
	limit  int
	worker string
	watch  bool
	every  time.Duration
}

// maxList bounds a page of slices, here as over HTTP.
const maxList = 10_000

func (a *app) statusCommand() *cobra.Command {
	o := statusOptions{limit: maxList, every: time.Second}
	cmd := &cobra.Command{
		Use:   "status SPACE",
		Short: "Show a space: its workers, a map of who owns what, and what moves",
		Long: "Show the workers of SPACE with what each owns, and the map: a letter for each slice, or for each part of many, of the worker that owns\n" +
			"it. A dot is a slice that nobody owns. What is to go to another worker is listed below, a few of many.\n\n" +
			"A worker is leaving when it ends, drained when an operator wants that, and silent when its session is over or was not renewed for its\n" +
			"TTL: its slices go to others as soon as its session is closed. --slices lists the slices. With -o json it is one object: see\n" +
			"docs/json.md. --watch shows it again whenever it has changed; with -o json or jsonl each time is a line.",
		Example: "  leasehold shard status orders\n" +
			"  leasehold shard status orders --slices --worker web1\n" +
			"  leasehold shard status orders --watch\n" +
			"  leasehold shard status orders -o json | jq '.unowned'",
		Args:              cli.Want("SPACE"),
		ValidArgsFunction: a.completeSpaces,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.limit < 1 || o.limit > maxList:
				return cli.Usage("--limit %d: want 1 to %d; --after continues", o.limit, maxList)
			case o.every < minEvery:
				return cli.Usage("--every %v: want at least %v", o.every, minEvery)
			}
			return a.withSpace(cmd.Context(), args[0], func(st store.Store) error { return a.status(cmd.Context(), st, args[0], o) })
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.slices, "slices", false, "list the slices, with who owns each")
	f.StringVar(&o.worker, "worker", "", "list the slices of this worker only, by its name, address or holder's id")
	f.StringVar(&o.after, "after", "", "begin behind this slice")
	f.IntVar(&o.limit, "limit", o.limit, "how many slices to list at most")
	f.BoolVar(&o.watch, "watch", false, "show it again whenever it has changed")
	cli.DurationVar(f, &o.every, "every", o.every, "with --watch: the pause between two looks")
	a.Flag(f, "output")
	_ = cmd.RegisterFlagCompletionFunc("worker", a.completeWorkers)
	return cmd
}

const minEvery = 100 * time.Millisecond

func (a *app) status(ctx context.Context, st store.Store, space string, o statusOptions) error {
	obs := lease.NewObserver(st, lease.ObserverOptions{Clock: a.Clock, Sightings: a.Sightings()})
	said := ""
	for {
		v, err := shardview.Read(ctx, st, space, obs)
		if err != nil {
			return err
		}
		text, err := a.statusText(v, o)
		if err != nil {
			return err
		}
		if o.watch && text != said && a.Output() == output.Table && output.Width(a.Out) > 0 {
			text = "\x1b[H\x1b[2J" + text
		}
		if text != said {
			if _, err := fmt.Fprint(a.Out, text); err != nil {
				return err
			}
		}
		said = strings.TrimPrefix(text, "\x1b[H\x1b[2J")
		if !o.watch {
			return nil
		}
		if err := clock.Sleep(ctx, a.Clock, o.every); err != nil {
			return context.Cause(ctx)
		}
	}
}

// statusText is what is written at once.
func (a *app) statusText(v *shardview.View, o statusOptions) (string, error) {
	s, err := v.Status(o.after, o.limit)
	if err != nil {
		return "", cli.Usage("--after: %w", err)
	}
	if o.worker != "" {
		if s.List, err = a.ofWorker(v, o.worker); err != nil {
			return "", err
		}
		s.Next = ""
	}
	var out strings.Builder
	switch {
	case a.Output() != output.Table:
		err = output.WriteJSON(&out, s, a.Output() == output.Lines || o.watch)
	case o.slices || o.worker != "":
		err = output.WriteTable(&out, sliceColumns(s.List, a.Clock.Wall()), output.Width(a.Out), nil)
		if s.Next != "" {
			a.Say("there are more: --after %s", s.Next)
		}
	default:
		err = a.writeStatus(&out, v, s)
	}
	return out.String(), err
}

// ofWorker returns the slices that a worker owns, or is to own.
func (a *app) ofWorker(v *shardview.View, worker string) ([]api.ShardSlice, error) {
	m, err := v.Pick(worker)
	if err != nil {
		return nil, err
	}
	list := []api.ShardSlice{}
	for _, e := range v.Entries {
		if e.Owner == m.Session || e.Next == m.Session {
			list = append(list, v.Slice(e))
		}
	}
	return list, nil
}

func (a *app) writeStatus(out *strings.Builder, v *shardview.View, s api.ShardStatus) error {
	kind := "name"
	if s.Hashed {
		kind = "range"
	}
	fmt.Fprintf(out, "%s: %s, %s", s.Space, count(s.Slices, kind), count(len(s.Workers), "worker"))
	if s.Unowned > 0 {
		fmt.Fprintf(out, ", %d that nobody owns", s.Unowned)
	}
	if s.Moving > 0 {
		fmt.Fprintf(out, ", %d on the move", s.Moving)
	}
	if s.Assigner == "" {
		out.WriteString("; no worker assigns: nothing moves")
	}
	out.WriteString("\n")
	if p := s.Placement; p != nil {
		fmt.Fprintf(out, "placement: %s\n", placementText(*p))
	}
	if len(s.Workers) > 0 {
		out.WriteString("\n")
		if err := output.WriteTable(out, workerColumns(s.Workers, a.Clock.Wall()), output.Width(a.Out), nil); err != nil {
			return err
		}
	}
	if s.Slices > 0 {
		out.WriteString("\n")
		a.writeMap(out, v, s)
	}
	a.writeMoves(out, v)
	return nil
}

// count is a number of things in words.
func count(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

func placementText(p api.ShardPlacement) string {
	var parts []string
	if p.Max > 0 {
		parts = append(parts, fmt.Sprintf("at most %d slices for each worker", p.Max))
	}
	if p.SpreadZones {
		parts = append(parts, "each zone has its share")
	}
	for _, pin := range p.Pins {
		parts = append(parts, "pin "+pinText(pin))
	}
	return strings.Join(parts, "; ")
}

// state says how a worker is, for people.
func state(w api.ShardWorker) string {
	switch {
	case w.Silent:
		return "silent"
	case w.Leaving:
		return "leaving"
	case w.Drained && w.Slices == 0:
		return "drained"
	case w.Drained:
		return "draining"
	}
	return "-"
}

func workerColumns(all []api.ShardWorker, now time.Time) []output.Column {
	letter, name, zone := output.Column{Title: " "}, output.Column{Title: "WORKER", Cut: true}, output.Column{Title: "ZONE", Cut: true}
	address, capacity, count := output.Column{Title: "ADDRESS", Cut: true}, output.Column{Title: "CAPACITY"}, output.Column{Title: "SLICES"}
	coming, going, how := output.Column{Title: "COMING"}, output.Column{Title: "GOING"}, output.Column{Title: "STATE"}
	since := output.Column{Title: "JOINED"}
	for i, w := range all {
		letter.Cells = append(letter.Cells, string(letterOf(i)))
		name.Cells = append(name.Cells, output.Plain(w.Worker))
		zone.Cells = append(zone.Cells, output.Plain(output.OrDash(w.Zone)))
		address.Cells = append(address.Cells, output.Plain(output.OrDash(w.Address)))
		capacity.Cells = append(capacity.Cells, strconv.FormatFloat(w.Capacity, 'g', 4, 64))
		count.Cells = append(count.Cells, strconv.Itoa(w.Slices))
		coming.Cells = append(coming.Cells, strconv.Itoa(w.Coming))
		going.Cells = append(going.Cells, strconv.Itoa(w.Going))
		how.Cells = append(how.Cells, state(w))
		joined := "-"
		if !w.Since.IsZero() {
			joined = output.Ago(w.Since, now)
		}
		since.Cells = append(since.Cells, joined)
	}
	return []output.Column{letter, name, zone, address, capacity, count, coming, going, how, since}
}

func sliceColumns(all []api.ShardSlice, now time.Time) []output.Column {
	id, token, since := output.Column{Title: "SLICE"}, output.Column{Title: "TOKEN"}, output.Column{Title: "SINCE"}
	owner, address, next := output.Column{Title: "WORKER", Cut: true}, output.Column{Title: "ADDRESS", Cut: true}, output.Column{Title: "GOES TO", Cut: true}
	for _, s := range all {
		id.Cells = append(id.Cells, output.Plain(s.Slice))
		number, at := "-", "-"
		if s.Token != 0 {
			number = s.Token.String()
		}
		if s.Since != nil {
			at = output.Ago(*s.Since, now)
		}
		token.Cells, since.Cells = append(token.Cells, number), append(since.Cells, at)
		owner.Cells = append(owner.Cells, output.Plain(output.OrDash(s.Worker)))
		address.Cells = append(address.Cells, output.Plain(output.OrDash(s.Address)))
		to := output.OrDash(s.Next)
		if s.Asked != "" {
			to = strings.TrimPrefix(to+", to "+s.Asked, "-, ")
		}
		next.Cells = append(next.Cells, output.Plain(to))
	}
	return []output.Column{id, owner, address, token, since, next}
}
