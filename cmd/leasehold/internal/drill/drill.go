package drill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/compat/admiral"
)

// Side is an instance of the pair.
type Side struct {
	Pod    string `json:"pod"`
	Region string `json:"region,omitempty"`
}

// Fault is something that is done to a side, and undone.
type Fault struct {
	Do, Undo func(ctx context.Context, step string, side Side) error
	How      string // the command that does it, for people
	Back     string // the command that undoes it, for people; "" if nothing has to be run
}

// Drill is one game day. Set all fields that don't say otherwise, then call [Drill.Run] once.
type Drill struct {
	Operator admiral.Operator
	// How long an instance may take to see a change of the row; 0 where the store pushes.
	Looks    time.Duration
	Sides    map[string]Probe // a write to each side, by pod; may be empty
	Service  Probe            // a write as a user sends it; nil for none
	Faults   map[string]Fault // by step: kill, partition, store
	Steps    []string         // in this order; names of [Steps]
	Runs     int              // how often all steps are done
	Every    time.Duration    // from one probe to the next
	Window   *Window          // nil for none: the drill starts at once
	Limit    time.Duration    // for one command of the operator
	Rehearse bool             // for the report
	Clock    clock.Clock
	Say      func(format string, args ...any) // a line for people

	mu     sync.Mutex
	began  clock.Instant
	events []Event
}

// Event is something that the drill did.
type Event struct {
	At   float64 `json:"at_seconds"`
	What string  `json:"what"`
}

// event notes and says what happens.
func (d *Drill) event(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	d.mu.Lock()
	at := d.Clock.Now().Sub(d.began)
	d.events = append(d.events, Event{at.Seconds(), text})
	d.mu.Unlock()
	d.Say("%7.2fs  %s", at.Seconds(), text)
}

// ErrClosed is the error of a drill outside its window.
var ErrClosed = errors.New("the window for drills is closed")

// Check returns an error unless the drill can be made. It does no I/O.
func (d *Drill) Check() error {
	for _, name := range d.Steps {
		i := slices.IndexFunc(allSteps, func(s step) bool { return s.name == name })
		switch {
		case i < 0:
			return fmt.Errorf("there is no step %q: the steps are %v", name, Steps())
		case allSteps[i].fault && d.Faults[name].Do == nil:
			return fmt.Errorf("the step %s needs the commands that make the fault and undo it", name)
		}
	}
	switch {
	case len(d.Steps) == 0 || d.Runs <= 0:
		return errors.New("the drill has no step")
	case len(d.Sides) == 0 && d.Service == nil:
		return errors.New("the drill has no probe: nothing would tell when somebody serves")
	}
	return nil
}

// fits returns an error unless the window is open for what still has to be done.
func (d *Drill) fits(need time.Duration) error {
	if d.Window == nil {
		return nil
	}
	left := d.Window.Left(d.Clock.Wall())
	switch {
	case left == 0:
		return fmt.Errorf("%w: it is %s", ErrClosed, d.Window)
	case left < need:
		return fmt.Errorf("%w in %v, which is less than the %v that this may take: it is %s", ErrClosed, left.Round(time.Second), need.Round(time.Second), d.Window)
	}
	return nil
}

// pair is who was active and who stood by when the drill began.
type pair struct{ active, other Side }

// preflight asks all instances, and changes nothing but the record by which they are asked.
func (d *Drill) preflight(ctx context.Context) (pair, error) {
	rec, err := d.Operator.Record(ctx)
	if err != nil {
		return pair{}, err
	}
	if rec.Owner == admiral.SkipOwner {
		return pair{}, fmt.Errorf("an operator holds every instance passive: %s: resume first", rec.Note)
	}
	var p pair
	var problem error
	for range 2 { // an instance may have begun its term, or its start, a moment ago
		if p, problem, err = d.roll(ctx); err != nil || problem == nil {
			break
		}
	}
	if err := errors.Join(err, problem); err != nil {
		return p, err
	}
	for pod := range d.Sides {
		if pod != p.active.Pod && pod != p.other.Pod {
			return p, fmt.Errorf("no instance %q answers: %s is active, and %s stands by", pod, p.active.Pod, p.other.Pod)
		}
	}
	return p, nil
}

// roll asks the instances. problem is why they are no pair of which one is active.
func (d *Drill) roll(ctx context.Context) (p pair, problem, err error) {
	all, err := d.Operator.RollCall(ctx, time.Second+d.Looks)
	if err != nil {
		return p, nil, err
	}
	var actives, others []Side
	for _, i := range all {
		switch side := (Side{i.Pod, i.Region}); i.Status {
		case "active":
			actives = append(actives, side)
		case "passive":
			others = append(others, side)
		default:
			problem = fmt.Errorf("%s is %s: wait until it stands by", i.Pod, i.Status)
		}
	}
	switch {
	case len(actives) != 1:
		return p, fmt.Errorf("%d instances say that they are active, and %d that they stand by: want one, and one at least", len(actives), len(others)), nil
	case len(others) == 0:
		return p, fmt.Errorf("%s is active, and no instance stands by: there is nobody to take over", actives[0].Pod), nil
	}
	p = pair{actives[0], others[0]}
	for _, o := range others { // one that is probed, if there is a choice
		if d.Sides[o.Pod] != nil {
			p.other = o
			break
		}
	}
	return p, problem, nil
}

// Run makes the drill, and returns its report, also when it ended early. It undoes all that it did
// before it returns, also when ctx is done. The error says why the drill could not begin; what went
// wrong in it is in the report. It blocks.
func (d *Drill) Run(ctx context.Context) (*Report, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	if err := d.fits(time.Duration(d.Runs) * d.lasts()); err != nil {
		return nil, err
	}
	start, err := d.preflight(ctx)
	if err != nil {
		return nil, err
	}
	d.began = d.Clock.Now()
	r := &run{d: d, start: start, book: &book{}, undo: undoing{limit: d.undoLimit()}}
	r.report = Report{
		Lease: d.Operator.Config.LeaseName, By: d.Operator.By, Rehearsal: d.Rehearse, Began: d.Clock.Wall(),
		TTL: d.Operator.Config.TTL().Seconds(), Wait: d.Operator.Config.WaitTime.Seconds(), Threshold: d.Operator.Config.FailureThreshold,
		Active: start.active, Standby: start.other,
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	var own sync.WaitGroup
	own.Go(func() { d.watch(watching, r.book) })
	for pod, probe := range d.Sides {
		own.Go(func() { d.follow(watching, r.book, pod, probe) })
	}
	if d.Service != nil {
		own.Go(func() { d.follow(watching, r.book, service, d.Service) })
	}
	r.undo.add(change{what: start.active.Pod + " is active again", do: r.restore, by: "leasehold standby switchover --to " + start.active.Pod})
	r.steps(ctx)
	r.undo.all(ctx, d)
	// What comes after the last change is judged, too.
	_ = clock.Sleep(context.WithoutCancel(ctx), d.Clock, 2*d.Every)
	stop()
	own.Wait()
	last, cancel := clock.WithTimeout(context.WithoutCancel(ctx), d.Clock, d.undoLimit())
	defer cancel()
	_ = d.readRow(last, r.book)
	r.finish(ctx)
	return &r.report, nil
}

// undoLimit is how long one undoing may take: a command, and then the instances.
func (d *Drill) undoLimit() time.Duration { return d.Limit + d.settleLimit() }

// settleLimit is how long the instances may take until one is active and the other stands by.
func (d *Drill) settleLimit() time.Duration {
	return 2*d.Operator.Config.TTL() + 2*d.Looks + 30*time.Second
}
