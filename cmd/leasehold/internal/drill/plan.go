package drill

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/leasehold/leasehold/compat/admiral"
)

// Plan writes what Run would do: each step, whom it hits, and for how long. It reads the row of the
// lease, and changes nothing.
func (d *Drill) Plan(ctx context.Context, w io.Writer) error {
	if err := d.Check(); err != nil {
		return err
	}
	c := d.Operator.Config
	active := "the active instance"
	if d.Rehearse {
		fmt.Fprintf(w, "Two instances of this program would start on a record of their own, and end again. %s itself is not touched.\n", c.LeaseName)
	} else {
		rec, err := d.Operator.Record(ctx)
		if err != nil {
			return err
		}
		switch pod, region := admiral.HolderOf(rec); {
		case rec.Owner == admiral.SkipOwner:
			fmt.Fprintf(w, "%s: an operator holds every instance passive: the drill would be refused.\n", c.LeaseName)
		case rec.Owner == "":
			fmt.Fprintf(w, "%s: nobody is active: the drill would be refused.\n", c.LeaseName)
		default:
			active = Side{pod, region}.name()
			if pod == "" {
				active = rec.Owner
			}
			fmt.Fprintf(w, "%s: %s is active now.\n", c.LeaseName, active)
		}
	}
	fmt.Fprintf(w, "waitTimeInSeconds %v × failureThreshold %d: the TTL is %v. A probe every %v.\n", c.WaitTime.Seconds(), c.FailureThreshold, c.TTL(), d.Every)
	if d.Window != nil {
		open := "closed"
		if left := d.Window.Left(d.Clock.Wall()); left > 0 {
			open = "open for another " + left.Round(time.Minute).String()
		}
		fmt.Fprintf(w, "The window is %s: %s now.\n", d.Window, open)
	}
	for i, name := range d.Steps {
		s := stepOf(name)
		fmt.Fprintf(w, "\n%d. %s: %s\n", i+1, name, s.what)
		if f := d.Faults[name]; s.fault && !d.Rehearse {
			fmt.Fprintf(w, "   runs:    %s\n", f.How)
			if f.Back != "" {
				fmt.Fprintf(w, "   undo:    %s\n", f.Back)
			} else {
				fmt.Fprintf(w, "   undo:    nothing: something else has to start it again\n")
			}
		}
		fmt.Fprintf(w, "   hits:    %s\n", s.hit)
		if most := s.outage(c); most > 0 {
			fmt.Fprintf(w, "   for:     %v at most\n", most)
		} else {
			fmt.Fprintf(w, "   for:     as long as the work takes, and two writes of the row; no TTL passes\n")
		}
		fmt.Fprintf(w, "   lasts:   %v at most, with what undoes it\n", d.stepLasts(name).Round(time.Second))
	}
	fmt.Fprintf(w, "\nAll of it is done %d times, and takes %v at most. At the end %s is active again.\n",
		d.Runs, (time.Duration(d.Runs) * d.lasts()).Round(time.Second), active)
	_, err := fmt.Fprintln(w, "Nothing was done.")
	return err
}
