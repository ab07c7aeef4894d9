package dr

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/pairs"
	"github.com/leasehold/leasehold/store"
)

// operation calls f with an operator of the lease that the flags name.
func (a *app) operation(ctx context.Context, o leaseOptions, f func(admiral.Operator) error) error {
	l, err := o.resolve(a)
	if err != nil {
		return err
	}
	return a.operationOn(ctx, l, f)
}

func (a *app) operationOn(ctx context.Context, l checkedLease, f func(admiral.Operator) error) error {
	opening, cancel := clock.WithTimeout(ctx, a.Clock, cli.OpenLimit)
	defer cancel()
	st, err := l.open(opening)
	if err != nil {
		return err
	}
	return errors.Join(f(admiral.Operator{Store: st, Config: l.cfg, By: cli.WhoAmI(), Clock: a.Clock}), st.Close())
}

func (a *app) standbyStatusCommand() *cobra.Command {
	var o leaseOptions
	var watch bool
	wait := 3 * time.Second
	cmd := &cobra.Command{
		Use:   "status --config FILE",
		Short: "Show who is active in which Region, and who stands by",
		Long: "Show who is active, and call the roll: each instance that runs answers with its Region and what it does. The call is a write\n" +
			"to the store, and so is each answer; --wait 0 leaves it out. The exit code is 1 when nobody is active.\n\n" +
			"With --watch, show the instances side by side until it is interrupted: who is active, since when, what the others wait for,\n" +
			"how far clocks are apart, and the last changes with their gaps. On a terminal the picture is kept up to date; elsewhere each\n" +
			"change is a line.",
		Example: "  leasehold standby status --config dr.yaml\n  leasehold standby status --config dr.yaml --watch",
		Args:    cli.Want(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if wait < 0 {
				return cli.Usage("--wait %v: want a duration that is not negative", wait)
			}
			l, err := o.resolve(a)
			if err != nil {
				return err
			}
			if !cmd.Flags().Changed("wait") {
				wait += l.cfg.Looks(l.checker)
			}
			if looks := l.cfg.Looks(l.checker); wait > 0 && looks > wait/2 && !watch {
				a.Say("asking the instances, which look at the table every %v", looks)
			}
			if watch {
				return a.operationOn(cmd.Context(), l, func(op admiral.Operator) error { return a.watchPair(cmd.Context(), op, wait) })
			}
			return a.operationOn(cmd.Context(), l, func(op admiral.Operator) error { return a.standbyStatus(cmd.Context(), op, wait) })
		},
	}
	o.add(cmd)
	cmd.Flags().BoolVarP(&watch, "watch", "w", false, "show the pair until it is interrupted")
	cli.DurationVar(cmd.Flags(), &wait, "wait", wait, "how long instances have to answer: by default 3s, and the time in which they look at a table")
	a.Flag(cmd.Flags(), "output")
	return cmd
}

func (a *app) standbyStatus(ctx context.Context, op admiral.Operator, wait time.Duration) error {
	rec, err := op.Record(ctx)
	if err != nil {
		return err
	}
	var instances []admiral.Instance
	if wait > 0 {
		if instances, err = op.RollCall(ctx, wait); err != nil {
			return err
		}
	}
	s, err := a.standing(ctx, op, rec, instances)
	if err != nil {
		return err
	}
	if err := a.showStanding(s); err != nil {
		return err
	}
	if s.State != api.PairActive {
		return cli.Exit(cli.ExitNo, nil)
	}
	return nil
}

// standing is what the row says, and the instances that have answered.
func (a *app) standing(ctx context.Context, op admiral.Operator, rec store.Record, instances []admiral.Instance) (api.Pair, error) {
	seen, err := a.Observer(op.Store).Of(ctx, rec)
	if err != nil {
		return api.Pair{Lease: op.Config.LeaseName}, err
	}
	var all []api.Instance
	for _, i := range instances {
		all = append(all, api.Instance(i))
	}
	return pairs.Of(seen, pairs.Times{TTL: op.Config.TTL(), WaitTime: op.Config.WaitTime}, all), nil
}

func (a *app) showStanding(s api.Pair) error {
	if a.Output() != output.Table {
		return output.WriteJSON(a.Out, s, a.Output() == output.Lines)
	}
	now := a.Clock.Wall()
	fmt.Fprintf(a.Out, "lease   %s\nstate   %s\n", s.Lease, s.State)
	line := func(what, text string) {
		if text != "" {
			fmt.Fprintf(a.Out, "%-8s%s\n", what, output.Plain(text))
		}
	}
	line("pod", s.Pod)
	line("region", s.Region)
	line("owner", s.Owner)
	if s.Token != 0 {
		line("token", s.Token.String())
	}
	if s.Since != nil && !s.Since.IsZero() {
		line("since", fmt.Sprintf("%s (%s)", output.At(*s.Since, now), output.Ago(*s.Since, now)))
	}
	line("note", s.Note)
	if len(s.Instances) == 0 {
		return nil
	}
	fmt.Fprintln(a.Out)
	pod, region, status, owner := output.Column{Title: "POD"}, output.Column{Title: "REGION"}, output.Column{Title: "STATUS"}, output.Column{Title: "OWNER", Cut: true}
	for _, i := range s.Instances {
		pod.Cells = append(pod.Cells, output.Plain(i.Pod))
		region.Cells = append(region.Cells, output.OrDash(output.Plain(i.Region)))
		status.Cells = append(status.Cells, output.Plain(i.Status))
		owner.Cells = append(owner.Cells, output.Plain(i.Owner))
	}
	return output.WriteTable(a.Out, []output.Column{pod, region, status, owner}, output.Width(a.Out), nil)
}

func (a *app) switchoverCommand() *cobra.Command {
	var o leaseOptions
	var to string
	wait := 30 * time.Second
	cmd := &cobra.Command{
		Use:   "switchover --to POD --config FILE",
		Short: "Have the active instance hand over to another one",
		Long: "Have the active instance stop and hand the lease over to the pod of that name, which has to be running. No TTL passes in\n" +
			"between: there is a gap only for what is running to stop, and for two writes. If the pod doesn't answer, nothing is done.",
		Example: "  leasehold standby switchover --to east --config dr.yaml",
		Args:    cli.Want(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if to == "" {
				return cli.Usage("--to is missing: the podIdentifier of the instance that is to be active; `leasehold standby status` lists them")
			}
			if wait <= 0 {
				return cli.Usage("--wait %v: want a duration above 0", wait)
			}
			return a.operation(cmd.Context(), o, func(op admiral.Operator) error { return a.switchover(cmd.Context(), op, to, wait) })
		},
	}
	o.add(cmd)
	cmd.Flags().StringVar(&to, "to", "", "podIdentifier of the instance that is to be active")
	cli.DurationVar(cmd.Flags(), &wait, "wait", wait, "how long it may take")
	return cmd
}

func (a *app) switchover(ctx context.Context, op admiral.Operator, to string, wait time.Duration) error {
	did, err := op.Switchover(ctx, to, wait)
	switch {
	case errors.Is(err, admiral.ErrNobody):
		return cli.Exit(cli.ExitNo, err)
	case err != nil:
		return err
	case did.From.Token == did.To.Token:
		a.Say("%s is active already", to)
		return nil
	}
	from, _ := admiral.HolderOf(did.From)
	if from == "" {
		from = did.From.Owner
	}
	a.Say("%s has handed over to %s in %v (term %d)", from, to, did.Took.Round(time.Millisecond), did.To.Token)
	return nil
}

func (a *app) holdCommand() *cobra.Command {
	var o leaseOptions
	var reason string
	var noWait bool
	cmd := &cobra.Command{
		Use:   "hold --config FILE",
		Short: "Hold every instance passive until resume",
		Long: "Write the owner " + admiral.SkipOwner + " into the lease's row: no instance becomes active, and the one that is becomes passive\n" +
			"at its next renewal. It doesn't expire. This waits for the TTL: then the instance that was active has stopped for certain.",
		Example: "  leasehold standby hold --reason 'the database is being moved' --config dr.yaml",
		Args:    cli.Want(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.operation(cmd.Context(), o, func(op admiral.Operator) error { return a.hold(cmd.Context(), op, reason, noWait) })
		},
	}
	o.add(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the instances and the history")
	cmd.Flags().BoolVarP(&noWait, "no-wait", "n", false, "don't wait until the instance that was active has stopped for certain")
	return cmd
}

func (a *app) hold(ctx context.Context, op admiral.Operator, reason string, noWait bool) error {
	held, err := op.Hold(ctx, reason)
	if err != nil {
		return err
	}
	if noWait {
		a.Say("%s is held: the active instance becomes passive at its next renewal, within %v", op.Config.LeaseName, op.Config.TTL())
		return nil
	}
	if op.Settled(held) {
		a.Say("%s is held, and nobody is active", op.Config.LeaseName)
		return nil
	}
	a.Say("%s is held; waiting %v until the instance that was active has stopped for certain", op.Config.LeaseName, op.Config.TTL())
	if err := op.Settle(ctx, held); err != nil {
		return err
	}
	a.Say("nobody is active")
	return nil
}

func (a *app) resumeCommand() *cobra.Command {
	var o leaseOptions
	cmd := &cobra.Command{
		Use:   "resume --config FILE",
		Short: "End a hold",
		Long: "End a hold, so that an instance becomes active: at once, or after the TTL if the hold was not known to have stopped the\n" +
			"instance that was active. The exit code is 1 when there is no hold.",
		Example: "  leasehold standby resume --config dr.yaml",
		Args:    cli.Want(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.operation(cmd.Context(), o, func(op admiral.Operator) error { return a.resume(cmd.Context(), op) })
		},
	}
	o.add(cmd)
	return cmd
}

func (a *app) resume(ctx context.Context, op admiral.Operator) error {
	_, left, err := op.Resume(ctx)
	switch {
	case errors.Is(err, admiral.ErrNotHeld):
		return cli.Exit(cli.ExitNo, err)
	case err != nil:
		return err
	case left > 0:
		a.Say("%s is free in %v: the instance that was active before the hold may not have noticed the hold yet", op.Config.LeaseName, left)
	default:
		a.Say("%s is free", op.Config.LeaseName)
	}
	return nil
}
