package operate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/output"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli/view"
	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// handoff is what `handoff` was asked to do.
type handoff struct {
	name   string
	to     string
	anyone bool
	reason string
	wait   time.Duration
}

func (a *app) handoffCommand() *cobra.Command {
	h := handoff{wait: 30 * time.Second}
	var noWait bool
	cmd := &cobra.Command{
		Use:   "handoff NAME --to HOLDER",
		Short: "Have the leader hand over to another candidate",
		Long: "Have the leader of NAME stop what it does, and hand over to HOLDER with one write: no TTL passes in between. HOLDER is the\n" +
			"name of a candidate (--as) or its holder's id, or the beginning of one, up to a slash; `leasehold candidates` lists them.\n" +
			"With --any the leader lets go, and the first candidate to take the name is next.\n\n" +
			"It waits until the successor leads (--wait), and says how long nobody led. The exit code is 1 if nobody leads, or HOLDER is\n" +
			"no candidate: nothing is done then; and 75 if it takes longer than --wait, or another candidate leads then.",
		Example:           "  leasehold handoff scheduler --to west --reason 'east is drained'",
		Args:              cli.Want("NAME"),
		ValidArgsFunction: a.CompleteNames,
		RunE: func(cmd *cobra.Command, args []string) error {
			h.name = args[0]
			switch {
			case h.to == "" && !h.anyone:
				return cli.Usage("--to is missing: `leasehold candidates %s` lists who it may be; --any leaves it open", h.name)
			case h.to != "" && h.anyone:
				return cli.Usage("--to and --any exclude each other: give one")
			case h.wait < 0 || h.wait == 0 && !noWait:
				return cli.Usage("--wait %v: want a duration above 0, or --no-wait", h.wait)
			case noWait && cmd.Flags().Changed("wait"):
				return cli.Usage("--no-wait and --wait exclude each other: give one")
			case noWait:
				h.wait = 0
			}
			if err := cli.HeldName(h.name); err != nil {
				return err
			}
			return a.WithStore(cmd.Context(), false, func(st store.Store) error { return a.handoff(cmd.Context(), st, h) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&h.to, "to", "", "the candidate that is to lead")
	f.BoolVar(&h.anyone, "any", false, "let the first candidate to take the name lead")
	f.StringVar(&h.reason, "reason", "", "why, for the leader's words")
	cli.DurationVarP(f, &h.wait, "wait", "w", h.wait, "how long it may take")
	f.BoolVarP(&noWait, "no-wait", "n", false, "don't wait for it")
	_ = cmd.RegisterFlagCompletionFunc("to", a.completeCandidates)
	return cmd
}

func (a *app) handoff(ctx context.Context, st store.Store, h handoff) error {
	v, err := a.Elected(ctx, st, h.name)
	if err != nil {
		return err
	}
	by := cli.WhoAmI()
	if h.reason != "" {
		by += ": " + h.reason
	}
	began := a.Clock.Now()
	order, err := election.HandOver(ctx, st, h.name, election.HandOverOptions{Token: v.Token, To: h.to, By: by})
	switch {
	case err != nil:
		return notOrdered(v, h, err)
	case order.AlreadyLeads:
		a.Say("%s leads already", order.To)
		return nil
	case h.wait == 0:
		a.Say("%s is told to hand %s over", order.From.Owner, h.name)
		return nil
	}
	next, err := a.awaitTerm(ctx, st, h, v, order.To)
	if err != nil {
		return err
	}
	a.Say("%s leads (token %d), %v after the order%s", next.Owner, next.Token, a.Clock.Now().Sub(began).Round(time.Millisecond), a.gap(ctx, st, h.name, v.Token, next))
	return nil
}

// notOrdered says why nothing was ordered, and what can be done.
func notOrdered(v view.View, h handoff, err error) error {
	switch {
	case errors.Is(err, election.ErrNotElected), errors.Is(err, election.ErrNoLeader) && len(v.Holders) > 0:
		err = noLeader(v, h)
	case errors.Is(err, election.ErrNoLeader) && v.PausedBy != "":
		err = fmt.Errorf("nobody leads %s: it is %s; `leasehold resume %s` ends that", h.name, v.PausedBy, h.name)
	case errors.Is(err, election.ErrNoLeader):
		err = fmt.Errorf("nobody leads %s: it is %s%s", h.name, v.State, whoStands(v))
	case !errors.Is(err, election.ErrNoCandidate) && !errors.Is(err, fence.ErrStale):
		// stale: another leads since just now.
		return err
	}
	return cli.Exit(cli.ExitNo, err)
}

// noLeader says what to do about a holder that is no candidate, as that of `leasehold run` isn't:
// what it runs would begin anew elsewhere, so that is for somebody to decide.
func noLeader(v view.View, h handoff) error {
	if len(v.Holders) > 1 {
		return fmt.Errorf("%s is shared by %d, of whom none leads: `leasehold show %s` lists them, and `leasehold break %s --token N` ends the one under token N",
			h.name, len(v.Holders), h.name, h.name)
	}
	token := v.Token
	if len(v.Holders) == 1 {
		token = v.Holders[0].Token
	}
	next := "the first candidate to take the name is next"
	switch {
	case v.Kind == view.KindFair && len(v.Waiting) > 0:
		next = v.Waiting[0].Holder + " is next in the queue"
		if i := slices.IndexFunc(v.Waiting, func(w view.Share) bool { return w.Holder == h.to || strings.HasPrefix(w.Holder, h.to+"/") }); h.to != "" && i > 0 {
			next += fmt.Sprintf("; %s is number %d there", v.Waiting[i].Holder, i+1)
		}
	case len(v.Candidates) > 0:
		next = "a candidate leads then" + whoStands(v)
	}
	return fmt.Errorf("%s holds %s and is no candidate (`leasehold run`, say), so it can't be told to hand over. Wait until its command has ended, or end it: "+
		"leasehold break %s --token %d --reason 'why'; %s", v.Holder, h.name, h.name, token, next)
}

// whoStands lists the candidates, for the end of a sentence.
func whoStands(v view.View) string {
	if len(v.Candidates) == 0 {
		return "; there is no candidate"
	}
	var all []string
	for _, c := range v.Candidates {
		text := output.Plain(c.Name)
		if c.Name != c.Holder {
			text += " (" + c.Holder + ")"
		}
		if c.Role != view.RoleCandidate {
			text += ", " + string(c.Role)
		}
		all = append(all, text)
	}
	return "; candidates: " + strings.Join(all, "; ")
}

// awaitTerm blocks until a term after that of v has begun, and returns it. It is an error when it
// is not that of to.
func (a *app) awaitTerm(ctx context.Context, st store.Store, h handoff, v view.View, to string) (election.Leader, error) {
	limited, cancel := clock.WithTimeout(ctx, a.Clock, h.wait)
	defer cancel()
	last := v.Holder + " still leads"
	for l, err := range election.Watch(limited, st, h.name, election.WatchOptions{Clock: a.Clock, Poll: time.Second}) {
		switch {
		case err != nil:
			last = cli.OneLine(err)
		case l.Owner == "":
			last = "nobody leads"
		case l.Token <= v.Token:
		case to != "" && l.Owner != to:
			return l, cli.Exit(cli.ExitConflict, fmt.Errorf("%s leads (token %d), not %s, whose claim came too late or failed: give the order again", l.Owner, l.Token, to))
		default:
			return l, nil
		}
	}
	if ctx.Err() != nil {
		return election.Leader{}, context.Cause(ctx)
	}
	return election.Leader{}, cli.Exit(cli.ExitConflict, fmt.Errorf("%s has not changed hands within %v: %s; the order stands while that term lasts", h.name, h.wait, last))
}

// gap says for how long nobody led between the term under token and next, as their clocks have it,
// if the record tells.
func (a *app) gap(ctx context.Context, st store.Store, name string, token fence.Token, next election.Leader) string {
	rec, err := store.Load(ctx, st, name)
	if err != nil || rec.Token != next.Token {
		return ""
	}
	for _, t := range rec.Past {
		if gap := rec.Acquired.Sub(t.Until); t.Token == token && gap >= 0 {
			return fmt.Sprintf("; nobody led for %v, by their clocks", gap.Round(100*time.Microsecond))
		}
	}
	return ""
}

func (a *app) completeCandidates(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.Complete(cmd, func(ctx context.Context, st store.Store) (names []string) {
		v, _ := a.Elected(ctx, st, args[0])
		for _, c := range v.Candidates {
			names = append(names, c.Name)
		}
		return names
	})
}
