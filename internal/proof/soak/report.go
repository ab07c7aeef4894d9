//go:build linux

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/leasehold/leasehold/clock"
)

// report is what a run has come to.
type report struct {
	verdict
	writes    int           // that guarded files have accepted
	settle    time.Duration // the longest that a name was free when the faults were over
	late      time.Duration // by how much the machine was late meanwhile
	resources []audited
	stuck     int      // processes that did not end when told
	orphans   []string // what lived on without a supervisor
}

func (r *report) print(out io.Writer, t *tormentor) {
	h := t.hist
	h.mu.Lock()
	defer h.mu.Unlock()
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(tw, "%s\t"+format+"\n", append([]any{name}, args...)...)
	}
	row("faults", "%d kills, %d stops (longest %v), %d breaks, %d at supervisors and guards; %d found nothing to strike",
		t.kills, t.stops, round(t.longestStop), t.breaks, t.struck, t.missed)
	row("outsiders", "%d records deleted, freed, edited or restored, %d uses as another kind (%d of a free name)", t.meddled, t.otherwise, t.got)
	if t.cluster != nil {
		row("failovers", "%d; the longest until another server served took %v", t.failovers, round(h.longestOutage()))
	}
	if t.Commands > 0 {
		n := t.sups.struck()
		row("supervisors", "%d killed, %d guards killed, %d of both, %d after both guards; %d stopped, %d guards stopped, %d of both; ended by themselves: %s",
			n[faultSupervisor], n[faultGuard], n[faultBoth], n[faultGuards], n[faultStopSupervisor], n[faultStopGuard], n[faultStopBoth], counts(t.sups.ends()))
		row("what they ran", "%d terms, %d orphans, %d overlaps, and %d where the machine stalled", t.families.count(), len(r.orphans), r.neverEnds, len(r.lateEnds))
	}
	row("terms", "%d; ended by: %s", len(h.terms), counts(h.losses))
	row("guarded writes", "%d accepted, %d refused as stale", r.writes, h.refusals)
	row("critical sections", "%d; %d overlaps, each in a section that was stopped (longest %v, then %v more before it looked again), %d within TTL/3 and %v after an outsider (longest %v), and %d where the machine stalled",
		len(h.sections), len(r.overlaps), round(longest(r.overlaps)), round(r.longestTail), len(r.outsiders), busy, round(longest(r.outsiders)), r.stalls)
	n, most, what := h.longestStall(t.clk.Now())
	row("store", "%d requests over %v; the longest, a %s, took %v; %d operations given up", n, slowFrom, cmp.Or(what, "-"), round(most), h.givenUp)
	if r.settle > 0 {
		row("afterwards", "every name that was wanted taken again, after %v at most (the machine was late by %v); %d processes did not end",
			round(r.settle), round(r.late), r.stuck)
	}
	row("violations", "%d", len(r.violations))
	_ = tw.Flush()
	if len(r.resources) > 0 {
		r.printResources(out, t.host.Missing)
	}
	const lines = 20
	for _, v := range r.violations[:min(lines, len(r.violations))] {
		fmt.Fprintln(out, "VIOLATION:", v)
	}
	if len(r.violations) > lines {
		fmt.Fprintf(out, "and %d more\n", len(r.violations)-lines)
	}
}

func longest(overlaps []overlap) (longest time.Duration) {
	for _, o := range overlaps {
		longest = max(longest, o.to.Sub(o.from))
	}
	return longest
}

// longestStall returns the slow requests to the store, but for those of processes that were stopped
// meanwhile.
func (h *history) longestStall(now clock.Instant) (n int, longest time.Duration, what string) {
	for _, s := range h.stalls {
		own := func(w window) bool { return w.proc == s.proc && w.from < s.to && min(w.to, now) > s.from }
		if slices.ContainsFunc(h.windows, own) {
			continue
		}
		n++
		if d := s.to.Sub(s.from); d > longest {
			longest, what = d, s.what
		}
	}
	return n, longest, what
}

func counts(m map[string]int) string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		all = append(all, fmt.Sprintf("%s %d", k, m[k]))
	}
	return cmp.Or(strings.Join(all, ", "), "nothing but release")
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
