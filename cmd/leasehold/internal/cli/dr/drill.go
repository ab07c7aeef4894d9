package dr

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/drill"
	"github.com/leasehold/leasehold/compat/admiral"
)

// drillOptions are the flags of drill.
type drillOptions struct {
	leaseOptions
	probe    string
	sides    []string
	commands map[string]*[2]string // by step: what makes the fault, and what undoes it
	steps    []string
	runs     int
	every    time.Duration
	limit    time.Duration
	window   string
	tz       string
	force    bool
	dry      bool
	rehearse bool
	report   string
}

// The least and the most that flags of drill may say.
const (
	minEvery = 10 * time.Millisecond
	maxEvery = 10 * time.Second
	maxRuns  = 1000
)

func (a *app) drillCommand() *cobra.Command {
	o := drillOptions{commands: map[string]*[2]string{drill.Kill: {}, drill.Partition: {}, drill.Store: {}}}
	cmd := &cobra.Command{
		Use:   "drill --config FILE [--probe URL|CMD] [--side POD=URL|CMD] [flags]",
		Short: "Make faults on purpose, measure how long nobody serves, and undo them: a game day",
		Long: "Switch over and back, hold and resume, and make the faults for which you give commands: kill the active instance, cut its Region\n" +
			"off, make the store unreachable for it. Measure how long it takes until the other side serves, and count writes that the wrong side\n" +
			"accepted, by probes. Undo all of it, also after an interrupt or a step that failed. Write a report with a picture.\n\n" +
			"A probe is a URL that answers 2xx, or a command for sh that ends with 0, when a write was accepted. Commands get\n" +
			drill.EnvPod + ", " + drill.EnvRegion + " and " + drill.EnvStep + " in their environment.\n\n" +
			"--rehearse makes every fault on two instances of its own, with a lease of their own in the same store, and needs no command.\n" +
			"The exit code is 1 when a step failed, a wrong side accepted a write, or something could not be undone.",
		Example: "  leasehold standby drill --config dr.yaml --rehearse\n" +
			"  leasehold standby drill --config dr.yaml --probe https://api.example/canary --window 02:00-04:00 --tz Europe/Paris --dry-run\n" +
			"  leasehold standby drill --config dr.yaml --side east=https://east.example/canary --side west=https://west.example/canary \\\n" +
			"    --kill-active './kill $" + drill.EnvPod + "' --restart './start $" + drill.EnvPod + "' --window 02:00-04:00 --tz Europe/Paris",
		Args: cli.Want(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.rehearse && !cmd.Flags().Changed("every") {
				o.every = 50 * time.Millisecond
			}
			return a.drill(cmd.Context(), o)
		},
	}
	o.add(cmd)
	f := cmd.Flags()
	f.StringVar(&o.probe, "probe", "", "a write as a user sends it: a URL, or a command")
	f.StringArrayVar(&o.sides, "side", nil, "a write to one side, as POD=URL or POD=CMD; give it for each side, to count writes that the wrong one accepts")
	f.StringVar(&o.commands[drill.Kill][0], "kill-active", "", "command that kills the active instance")
	f.StringVar(&o.commands[drill.Kill][1], "restart", "", "command that starts it again (default: something else does)")
	f.StringVar(&o.commands[drill.Partition][0], "cut", "", "command that cuts the Region of the active instance off")
	f.StringVar(&o.commands[drill.Partition][1], "mend", "", "command that connects it again")
	f.StringVar(&o.commands[drill.Store][0], "cut-store", "", "command that makes the store unreachable for the active instance")
	f.StringVar(&o.commands[drill.Store][1], "mend-store", "", "command that makes it reachable again")
	f.StringSliceVar(&o.steps, "steps", nil, "which steps, in this order: "+strings.Join(drill.Steps(), ", ")+" (default: all that can be made, without hold)")
	f.IntVar(&o.runs, "runs", 1, "how often all steps are made")
	cli.DurationVar(f, &o.every, "every", 250*time.Millisecond, "time from one probe to the next; a rehearsal has 50ms")
	cli.DurationVar(f, &o.limit, "command-limit", time.Minute, "how long one command may take")
	f.StringVar(&o.window, "window", "", "the time of day in which drills may be made, such as 02:00-04:00; the drill has to end in it")
	f.StringVar(&o.tz, "tz", "", "time `zone` of the window, such as Europe/Paris (default UTC)")
	f.BoolVar(&o.force, "force", false, "make the drill now, whatever the window")
	f.BoolVar(&o.dry, "dry-run", false, "say each step, whom it hits and for how long, and do nothing")
	f.BoolVar(&o.rehearse, "rehearse", false, "on two instances of its own, with a lease of their own in the same store")
	f.StringVar(&o.report, "report", "", "folder for report.md, report.json and timeline.svg (default: drill-LEASE-TIME)")
	a.Flag(f, "output")
	return cmd
}

// drill makes the drill that the flags describe.
func (a *app) drill(ctx context.Context, o drillOptions) error {
	l, err := o.resolve(a)
	if err != nil {
		return err
	}
	d := &drill.Drill{
		Looks: l.cfg.Looks(l.checker), Runs: o.runs, Every: o.every, Limit: o.limit, Rehearse: o.rehearse, Clock: a.Clock,
		Say: a.Say, Steps: o.steps, Sides: map[string]drill.Probe{}, Faults: map[string]drill.Fault{},
	}
	if err := o.fill(d, a); err != nil {
		return err
	}
	if o.rehearse {
		l.cfg.LeaseName = scratchName(l.cfg.LeaseName)
	}
	return a.operationOn(ctx, l, func(op admiral.Operator) error {
		d.Operator = op
		switch {
		case o.dry && o.rehearse:
			d.Faults = (&drill.Rehearsal{}).Faults() // for their names
			d.Sides = (&drill.Rehearsal{}).Sides()
			fallthrough
		case o.dry:
			return d.Plan(ctx, a.Out)
		case o.rehearse:
			return a.rehearse(ctx, d, l, o)
		}
		return a.drillAndReport(ctx, d, o)
	})
}

// fill settles what the flags say, and refuses what makes no drill.
func (o drillOptions) fill(d *drill.Drill, a *app) error {
	if err := o.check(); err != nil {
		return err
	}
	if err := o.fillWindow(d); err != nil {
		return err
	}
	if err := o.fillFaults(d, a); err != nil {
		return err
	}
	if err := o.fillProbes(d); err != nil {
		return err
	}
	return o.fillSteps(d)
}

func (o drillOptions) check() error {
	switch {
	case o.runs < 1 || o.runs > maxRuns:
		return cli.Usage("--runs %d: want 1 to %d", o.runs, maxRuns)
	case o.every < minEvery || o.every > maxEvery:
		return cli.Usage("--every %v: want %v to %v", o.every, minEvery, maxEvery)
	case o.limit <= 0:
		return cli.Usage("--command-limit %v: want a duration above 0", o.limit)
	case o.tz != "" && o.window == "":
		return cli.Usage("--tz: it belongs to --window FROM-TO")
	case o.rehearse && (o.probe != "" || len(o.sides) > 0):
		return cli.Usage("--probe and --side: --rehearse has instances, and probes, of its own: leave them out")
	case o.rehearse || o.dry && (o.probe != "" || len(o.sides) > 0):
		return nil
	case o.window == "" && !o.force && !o.dry:
		return cli.Usage("--window is missing: the time of day in which a drill may hit users, such as 02:00-04:00; --force makes it now")
	case o.probe == "" && len(o.sides) == 0:
		return cli.Usage("--probe or --side is missing: a URL or a command that tells whether a write is accepted; or --rehearse")
	}
	return nil
}

func (o drillOptions) fillFaults(d *drill.Drill, a *app) error {
	for step, c := range o.commands {
		switch {
		case c[0] == "" && c[1] == "":
		case o.rehearse:
			return cli.Usage("the commands for the step %s: --rehearse makes its faults by itself: leave them out", step)
		case c[0] == "":
			return cli.Usage("the step %s has a command that undoes it (%s), and none that makes the fault", step, c[1])
		case c[1] == "" && step != drill.Kill:
			return cli.Usage("the step %s has a command that makes the fault (%s), and none that undoes it", step, c[0])
		default:
			d.Faults[step] = drill.ShellFault(c[0], c[1], func(text string) { a.Say("%s", text) })
		}
	}
	return nil
}

// fillSteps takes all steps that can be made, unless steps are named.
func (o drillOptions) fillSteps(d *drill.Drill) error {
	able := func(name string) bool {
		_, given := d.Faults[name]
		return o.rehearse || given || o.commands[name] == nil
	}
	if len(d.Steps) == 0 {
		for _, name := range drill.Steps() {
			if able(name) && (name != drill.Hold || o.rehearse) {
				d.Steps = append(d.Steps, name)
			}
		}
	}
	for _, name := range d.Steps {
		switch {
		case !slices.Contains(drill.Steps(), name):
			return cli.Usage("--steps: there is no step %q: the steps are %s", name, strings.Join(drill.Steps(), ", "))
		case !able(name):
			return cli.Usage("--steps: %s needs the commands that make the fault and undo it", name)
		}
	}
	return nil
}

func (o drillOptions) fillWindow(d *drill.Drill) error {
	if o.window == "" || o.force {
		return nil
	}
	zone, err := time.LoadLocation(o.tz)
	if err != nil || o.tz == "Local" {
		return cli.Usage("--tz %q: want a name of the time zone database, such as Europe/Berlin, which has to be installed (tzdata)", o.tz)
	}
	if d.Window, err = drill.ParseWindow(o.window, zone); err != nil {
		return cli.Usage("--%w", err)
	}
	return nil
}

func (o drillOptions) fillProbes(d *drill.Drill) (err error) {
	if o.probe != "" {
		if d.Service, err = drill.ParseProbe(o.probe, drill.Side{}); err != nil {
			return cli.Usage("--probe %q: %w", o.probe, err)
		}
	}
	for _, text := range o.sides {
		pod, probe, ok := strings.Cut(text, "=")
		if !ok || pod == "" || strings.ContainsAny(pod, "/ ") {
			return cli.Usage("--side %q: want POD=URL or POD=CMD, where POD is a podIdentifier", text)
		}
		if d.Sides[pod] != nil {
			return cli.Usage("--side %s: that side has two probes: give one", pod)
		}
		if d.Sides[pod], err = drill.ParseProbe(probe, drill.Side{Pod: pod}); err != nil {
			return cli.Usage("--side %s: %w", pod, err)
		}
	}
	return nil
}

// drillAndReport makes the drill, and writes its report to a folder that is made before anything is
// done.
func (a *app) drillAndReport(ctx context.Context, d *drill.Drill, o drillOptions) error {
	dir := o.report
	if dir == "" {
		dir = fmt.Sprintf("drill-%s-%s", fileName(d.Operator.Config.LeaseName), a.Clock.Wall().UTC().Format("20060102T150405Z"))
	}
	const forMe = 0o755
	if err := os.MkdirAll(dir, forMe); err != nil {
		return fmt.Errorf("--report: %w", err)
	}
	files := map[string]*os.File{}
	for _, name := range []string{reportMarkdown, reportJSON, reportPicture} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			return fmt.Errorf("--report: %w", err)
		}
		// Written and closed below, unless the drill could not begin.
		defer func() { _ = f.Close() }()
		files[name] = f
	}
	r, err := d.Run(ctx)
	if err != nil {
		for _, f := range files {
			_ = os.Remove(f.Name())
		}
		_ = os.Remove(dir) // unless there is something else in it
		return err
	}
	err = errors.Join(r.Markdown(files[reportMarkdown], reportPicture), r.JSON(files[reportJSON]), r.SVG(files[reportPicture]))
	for _, f := range files {
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("the drill is over, and its report can't be written: %w", errors.Join(err, a.showReport(r)))
	}
	if err := a.showReport(r); err != nil {
		return err
	}
	a.Say("the report is in %s", dir)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !r.OK:
		return cli.Exit(cli.ExitNo, nil)
	}
	return nil
}

// The files of a report.
const (
	reportMarkdown = "report.md"
	reportJSON     = "report.json"
	reportPicture  = "timeline.svg"
)

func (a *app) showReport(r *drill.Report) error {
	if a.Output() != output.Table {
		return output.WriteJSON(a.Out, r, a.Output() == output.Lines)
	}
	fmt.Fprintln(a.Out, output.Plain(r.Verdict()))
	step, runs, half, most := output.Column{Title: "STEP"}, output.Column{Title: "RUNS"}, output.Column{Title: "RTO P50"}, output.Column{Title: "RTO MAX"}
	none, nones := output.Column{Title: "OUTAGE P50"}, output.Column{Title: "OUTAGE MAX"}
	seconds := func(c *output.Column, s float64) { c.Cells = append(c.Cells, fmt.Sprintf("%.2fs", s)) }
	for _, s := range r.Summary {
		step.Cells, runs.Cells = append(step.Cells, s.Step), append(runs.Cells, fmt.Sprint(s.Runs))
		seconds(&half, s.RTOP50)
		seconds(&most, s.RTOMax)
		seconds(&none, s.OutageP50)
		seconds(&nones, s.OutageMax)
	}
	if err := output.WriteTable(a.Out, []output.Column{step, runs, half, most, none, nones}, output.Width(a.Out), nil); err != nil {
		return err
	}
	text := fmt.Sprintf("%d writes accepted, %d of them by the wrong side", r.Accepted, r.Wrong)
	if !r.SidesAsked {
		text = "no side was probed: nothing is known of writes that the wrong side accepted"
	}
	_, err := fmt.Fprintln(a.Out, text)
	return err
}

// fileName makes a part of a file's name of a lease's.
func fileName(lease string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune(`/\:*?"<>|`, r) {
			return '-'
		}
		return r
	}, lease)
}

// drillInstanceCommand is one instance of a rehearsal.
func (a *app) drillInstanceCommand() *cobra.Command {
	var o leaseOptions
	var lease, pod string
	cmd := &cobra.Command{
		Use: "drill-instance", Hidden: true, Args: cli.Want(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := o.resolve(a)
			if err != nil {
				return err
			}
			l.cfg.LeaseName, l.cfg.PodIdentifier = lease, pod
			return drill.Instance{New: l.cuttable, In: a.In, Out: a.Out}.Run(cmd.Context())
		},
	}
	o.add(cmd)
	cmd.Flags().StringVar(&lease, "lease", "", "name of the lease")
	cmd.Flags().StringVar(&pod, "pod", "", "name of the instance")
	return cmd
}

// rehearse makes the drill on two instances of its own.
func (a *app) rehearse(ctx context.Context, d *drill.Drill, l checkedLease, o drillOptions) (err error) {
	r, err := drill.StartRehearsal(ctx, a.instance(l, o))
	if err != nil {
		return err
	}
	d.Sides, d.Faults = r.Sides(), r.Faults()
	a.Say("two instances run, with the lease %s", l.cfg.LeaseName)
	defer func() { err = errors.Join(err, r.Close(), a.removeScratch(ctx, d.Operator)) }()
	if err := d.Ready(ctx); err != nil {
		return err
	}
	return a.drillAndReport(ctx, d, o)
}

// removeScratch deletes the rows of a rehearsal, also after an interrupt.
func (a *app) removeScratch(ctx context.Context, op admiral.Operator) error {
	ctx, cancel := clock.WithTimeout(context.WithoutCancel(ctx), a.Clock, cli.OpenLimit)
	defer cancel()
	if err := op.Remove(ctx); err != nil {
		a.Say("the rows of %s are left in the store: %v", op.Config.LeaseName, err)
	}
	return nil
}
