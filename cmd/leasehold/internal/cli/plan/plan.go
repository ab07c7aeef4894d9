package plan

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/plan"
)

func (a *app) planCommand() *cobra.Command {
	in := plan.Input{Restart: 2 * time.Second, Detect: 5 * time.Minute, Deploy: 2 * time.Minute, Outage: 5 * time.Minute, Replicas: 3, Poll: time.Second}
	rates := []struct {
		flag, standard, what string
		rate                 *plan.Rate
	}{
		{"crashes", "1/day", "how often an instance crashes", &in.Crashes},
		{"machine-failures", "1/month", "how often the machine of an instance fails", &in.Machines},
		{"deployments", "1/day", "how often a new version is deployed", &in.Deploys},
		{"outages", "2/year", "how often the store can't be reached", &in.Outages},
	}
	var under, picture string
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Compare one instance with elected replicas: downtime, takeovers, writes",
		Long: "Compute what one instance of a program, and elected replicas of it, are down for in a year, cause by cause, and advise one\n" +
			"of them. The formulas are in docs/plan.md. Rates are written as 1/day, 2/year or 1/36h; 0 is never. With a --store in\n" +
			"DynamoDB the month's price is there too, as `leasehold cost` computes it. It asks nobody.\n\n" +
			"The replicas are kept by `leasehold run` or `elect`, which renew every quarter of the TTL and stop the program --kill-after and a\n" +
			"little before the validity ends. With --under library they hold their leases themselves: they renew every third of the TTL, and\n" +
			"work until the validity ends.",
		Example: "  leasehold plan --crashes 1/day --restart 2s --machine-failures 0 --deployments 1/hour --deployment 2m\n" +
			"  leasehold plan --ttl 10s --poll 50ms --crash-releases --svg plan.svg\n  leasehold plan --under library --ttl 15s\n  leasehold plan --store dynamodb://leases -o json",
		Args: cli.Want(),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if in.Timing, err = a.planTiming(under, cmd.Flags().Changed("kill-after")); err != nil {
				return err
			}
			p, err := plan.Compute(in)
			if err != nil {
				return cli.Exit(cli.ExitUsage, err)
			}
			return a.plan(p, under, picture)
		},
	}
	flags := cmd.Flags()
	for _, r := range rates {
		if err := r.rate.Set(r.standard); err != nil {
			panic(err) // a constant of this function
		}
		flags.Var(r.rate, r.flag, r.what)
	}
	cli.DurationVar(flags, &in.Restart, "restart", in.Restart, "from a crash until that instance works again")
	cli.DurationVar(flags, &in.Detect, "detect", in.Detect, "from a machine's failure until another one does its work, without election")
	cli.DurationVar(flags, &in.Deploy, "deployment", in.Deploy, "from when an instance stops for a deployment until the new one works")
	cli.DurationVar(flags, &in.Outage, "outage", in.Outage, "how long the store can't be reached each time")
	flags.IntVar(&in.Replicas, "replicas", in.Replicas, "how many stand for election")
	cli.DurationVar(flags, &in.Poll, "poll", in.Poll, "how long until a waiter learns of a change: between two looks, or what the store's push takes")
	cli.DurationVar(flags, &in.WarmUp, "warm-up", 0, "from being elected to working")
	flags.BoolVar(&in.CrashReleases, "crash-releases", false, "a crash releases the lease, as under leasehold run")
	flags.StringVar(&under, "under", underRun, "what keeps the leader's lease: run, elect or library")
	flags.StringVar(&picture, "svg", "", "write a picture to this file, too")
	for _, name := range []string{"ttl", "kill-after", "output"} {
		a.Flag(flags, name)
	}
	return cmd
}

// What can keep the leader's lease.
const (
	underRun     = "run"
	underElect   = "elect"
	underLibrary = "library"
)

// planTiming is how the leader's lease is kept: by run's own rules, elect's, or the library's.
func (a *app) planTiming(under string, killAfter bool) (plan.Timing, error) {
	switch under {
	case underRun, underElect:
		t, err := a.Timing()
		return plan.Timing{TTL: t.TTL, Renew: t.Renew(), Validity: t.Validity(), Stops: t.Stops(), Survives: t.Survives()}, err
	case underLibrary:
		if killAfter {
			return plan.Timing{}, cli.Usage("--kill-after: it is for --under run and --under elect, which stop a program; one that has the library stops itself")
		}
		t, err := plan.Library(a.Duration("ttl"))
		if err != nil {
			err = cli.Exit(cli.ExitUsage, err)
		}
		return t, err
	}
	return plan.Timing{}, cli.Usage("--under %q: want run, elect or library", under)
}

// underText is what keeps the lease, for people.
func underText(under string) string {
	if under == underLibrary {
		return "the library"
	}
	return "leasehold " + under
}

// plan writes p, for leases that are kept by under, and draws it to the file that picture names.
func (a *app) plan(p plan.Plan, under, picture string) error {
	dollars, priced, err := a.electionDollars(p)
	if err != nil {
		return cli.Exit(cli.ExitUsage, err)
	}
	if picture != "" {
		if err := drawPlan(p, picture); err != nil {
			return fmt.Errorf("draw the picture: %w", err)
		}
	}
	if a.Output() != output.Table {
		v := newPlanView(p, under)
		if priced {
			v.Elected.Dollars = &dollars
		}
		return output.WriteJSON(a.Out, v, a.Output() == output.Lines)
	}
	what, one, elected := output.Column{Title: "DOWN A YEAR"}, output.Column{Title: "ONE INSTANCE"}, output.Column{Title: fmt.Sprintf("%d ELECTED REPLICAS", p.Input.Replicas)}
	add := func(name, left, right string) {
		what.Cells, one.Cells, elected.Cells = append(what.Cells, name), append(one.Cells, left), append(elected.Cells, right)
	}
	for _, c := range p.Causes() {
		add(c.Name, plan.Short(c.One), plan.Short(c.Elected))
	}
	add("together", plan.Short(p.One.Total), plan.Short(p.Elected.Total))
	add("availability", p.One.Percent(), p.Elected.Percent())
	add("nines", ninesText(p.One), ninesText(p.Elected))
	add("takeover", "-", boundsText(p.Takeover))
	add("hand-over", "-", boundsText(p.Handover))
	add("lease kept by", "-", fmt.Sprintf("%s, TTL %v", underText(under), p.Input.Timing.TTL))
	add("leader stops after", "-", plan.Short(p.Input.Timing.Stops)+" without a renewal")
	add("rides out outages of", "any length", plan.Short(p.Input.Timing.Survives))
	add("writes a day", "0", grouped(p.Elected.WritesPerDay))
	if priced {
		add("dollars a month", "0.00", strconv.FormatFloat(dollars, 'f', 2, 64))
	}
	if err := output.WriteTable(a.Out, []output.Column{what, one, elected}, output.Width(a.Out), nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.Out, "\n%s\n", p.Advice())
	return err
}

func drawPlan(p plan.Plan, path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	err = p.SVG(f)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

func ninesText(s plan.Side) string {
	if s.Nines < 0 {
		return "all"
	}
	return strconv.Itoa(s.Nines)
}

func boundsText(b plan.Bounds) string {
	return fmt.Sprintf("%s to %s, %s on average", plan.Short(b.Least), plan.Short(b.Most), plan.Short(b.Mean))
}

// grouped is a number without fractions, with a comma before each three digits.
func grouped(n float64) string {
	s := strconv.FormatFloat(n, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
