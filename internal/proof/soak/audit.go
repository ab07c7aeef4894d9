//go:build linux

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/leasehold/leasehold/internal/proof/soak/resources"
)

// audited is what became of the writes to resources of one kind.
type audited struct {
	kind            string
	attempts        int // that workers have heard of the end of
	refused, failed int
	// By the resource's own log, also those whose writer was killed before it heard.
	accepted int
	stale    int // of these, those that came after one of a higher token
	example  string
}

// audit compares the logs of all resources with what the workers have told.
func (t *tormentor) audit(ctx context.Context, v *verdict) (all []audited) {
	for _, k := range resources.Kinds {
		if _, here := t.host.Addresses[k.Name]; !here {
			continue
		}
		t.hist.mu.Lock()
		told := cmp.Or(t.hist.resources[k.Name], &tally{})
		t.hist.mu.Unlock()
		a := audited{kind: k.Name, attempts: len(told.acks) + told.refused + told.failed, refused: told.refused, failed: told.failed, example: told.example}
		for i := range t.Names {
			accepted, err := t.log(ctx, k.Name, name(i))
			if err != nil {
				v.violate("%s: %s: its log can't be read: %v", k.Name, name(i), err)
				continue
			}
			a.accepted += len(accepted)
			a.stale += late(accepted)
			var sub verdict
			if k.Rewrites {
				sub.guarded(name(i), accepted, nil)
				sub.newest(name(i), accepted, told.newest[name(i)])
			} else {
				sub.guarded(name(i), accepted, told.acks)
			}
			for _, what := range sub.violations {
				v.violate("%s: %s", k.Name, what)
			}
		}
		if a.accepted == 0 {
			v.violate("%s: nothing was accepted of %d attempts: %s", k.Name, a.attempts, a.example)
		}
		all = append(all, a)
	}
	return all
}

func (t *tormentor) log(ctx context.Context, kind, name string) (all []write, err error) {
	lines, err := t.host.Log(ctx, kind, name)
	if err != nil {
		return nil, err
	}
	for _, line := range lines {
		w, err := parseWrite(line)
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	return all, nil
}

// printResources prints a line for each kind of resource.
func (r *report) printResources(out io.Writer, missing []string) {
	tw := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tw, "resource\tattempts\trefused\tfailed\taccepted\tof these stale\t")
	for _, a := range r.resources {
		fmt.Fprintf(tw, "%s\t%d\t%d\t%d\t%d\t%d\t\n", a.kind, a.attempts, a.refused, a.failed, a.accepted, a.stale)
	}
	_ = tw.Flush()
	for _, a := range r.resources {
		if a.failed > 0 {
			fmt.Fprintf(out, "%s: one of the failures: %.200q\n", a.kind, a.example)
		}
	}
	if len(missing) > 0 {
		fmt.Fprintf(out, "not here, for their servers are not installed: %v\n", missing)
	}
}
