package operate

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/store"
)

// breaking is what `break` was asked to do.
type breaking struct {
	name   string
	token  fence.Token
	in     time.Duration
	grace  time.Duration
	reason string
	yes    bool
}

func (a *app) breakCommand() *cobra.Command {
	var b breaking
	var text string
	cmd := &cobra.Command{
		Use:   "break NAME --token N",
		Short: "End a hold against its holder's will",
		Long: "End the hold of NAME under token N. The holder learns of it at its next renewal, ends its work and frees the name.\n" +
			"Others may take it when that has happened, or when the TTL has passed: until then the old holder may believe that it\n" +
			"holds the name. --grace shortens that time, and lets two work at once if the old holder still does.\n" +
			"With --in it counts down first; an interrupt in that time breaks nothing.",
		Example: "  leasehold break billing --token 1795257194000 --reason 'host is being drained'\n" +
			"  leasehold break billing --token 1795257194000 --in 30s",
		Args:              cli.Want("NAME"),
		ValidArgsFunction: a.CompleteNames,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			b.name = args[0]
			if err := cli.HeldName(b.name); err != nil {
				return err
			}
			if b.token, err = cli.TokenFlag(b.name, text); err != nil {
				return err
			}
			if b.in < 0 || b.grace < 0 {
				return cli.Usage("--in %v, --grace %v: want durations that are not negative", b.in, b.grace)
			}
			return a.WithStore(cmd.Context(), false, func(st store.Store) error { return a.breakHold(cmd.Context(), st, b) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&text, "token", "", "the token of the term to end, as leasehold show NAME prints it")
	cli.DurationVar(f, &b.in, "in", 0, "count down before")
	f.StringVar(&b.reason, "reason", "", "why, for the holder and the history")
	cli.DurationVar(f, &b.grace, "grace", 0, "how long others leave the name to a holder that doesn't let go (default: its TTL, which is safe)")
	f.BoolVarP(&b.yes, "yes", "y", false, "don't ask")
	return cmd
}

func (a *app) breakHold(ctx context.Context, st store.Store, b breaking) error {
	t, err := a.current(ctx, st, b)
	if err != nil {
		return err
	}
	a.sayVictim(t, b)
	switch {
	case b.in > 0:
		err = a.countDown(ctx, st, b)
	case !b.yes:
		err = a.Confirm(ctx, "break "+b.name, b.name+" is left alone", "add --yes, or --in 30s for a countdown")
	}
	if err != nil {
		return err
	}
	rec, err := drive.Break(ctx, st, t.key, drive.EndTerm{Token: t.token, By: cli.WhoAmI(), Reason: b.reason, Grace: b.grace})
	if err != nil {
		return evictionError(err)
	}
	a.Say("%s is broken; it is free when its holder has let go, or in %v", t.what(), rec.TTL)
	return nil
}

// current returns the hold to break, if it is the current one.
func (a *app) current(ctx context.Context, st store.Store, b breaking) (target, error) {
	t, err := a.target(ctx, st, b.name, b.token)
	if err != nil {
		return t, evictionError(err)
	}
	return t, nil
}

// sayVictim says who is hit, and what that means.
func (a *app) sayVictim(t target, b breaking) {
	now, v := a.Clock.Wall(), t.view
	a.Say("%s is %s by %s since %s (%s)", t.what(), v.State, v.Holder, output.At(*v.Since, now), output.Ago(*v.Since, now))
	if info := v.InfoLine(); info != "" {
		a.Say("  %s", info)
	}
	if t.key != v.Name {
		a.Say("  the session %s ends, with all that it keeps", t.key)
	}
	ttl := v.HoldTTL()
	a.Say("the holder learns of a break at its next renewal; until then, %v at most, it may still be running and believe that it holds %s", ttl, v.Name)
	if b.grace > 0 && b.grace < ttl {
		a.Say("with --grace %v another may start before that: two may work at once", b.grace)
	}
}

// countDown waits, and ends early with an error when the hold is not the current one any more.
func (a *app) countDown(ctx context.Context, st store.Store, b breaking) error {
	end := a.Clock.Now().Add(b.in)
	onTerminal := term.IsTerminal(int(a.Err.Fd())) && !a.Quiet()
	if onTerminal {
		defer fmt.Fprintln(a.Err)
	} else {
		a.Say("breaking %s in %v; an interrupt leaves it alone", b.name, b.in)
	}
	for {
		left := end.Sub(a.Clock.Now())
		if left <= 0 {
			return nil
		}
		if onTerminal {
			fmt.Fprintf(a.Err, "\r\x1b[Kleasehold: breaking %s in %v; ctrl-C leaves it alone", b.name, left.Round(time.Second))
		}
		if err := clock.Sleep(ctx, a.Clock, min(left, time.Second)); err != nil {
			return err
		}
		if _, err := a.current(ctx, st, b); err != nil {
			return err
		}
	}
}
