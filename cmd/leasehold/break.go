package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
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
		Args:              want("NAME"),
		ValidArgsFunction: a.completeNames,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			b.name = args[0]
			if err := heldName(b.name); err != nil {
				return err
			}
			if b.token, err = tokenFlag(b.name, text); err != nil {
				return err
			}
			if b.in < 0 || b.grace < 0 {
				return usage("--in %v, --grace %v: want durations that are not negative", b.in, b.grace)
			}
			return a.withStore(cmd.Context(), false, func(st store.Store) error { return a.breakHold(cmd.Context(), st, b) })
		},
	}
	f := cmd.Flags()
	f.StringVar(&text, "token", "", "the token of the term to end, as leasehold show NAME prints it")
	f.DurationVar(&b.in, "in", 0, "count down before")
	f.StringVar(&b.reason, "reason", "", "why, for the holder and the history")
	f.DurationVar(&b.grace, "grace", 0, "how long others leave the name to a holder that doesn't let go (default: its TTL, which is safe)")
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
		err = a.confirm(ctx, "break "+b.name, b.name+" is left alone", "add --yes, or --in 30s for a countdown")
	}
	if err != nil {
		return err
	}
	rec, err := lease.Break(ctx, st, t.key, lease.Eviction{Token: t.token, By: whoAmI(), Note: b.reason, Grace: b.grace})
	if err != nil {
		return evictionError(err)
	}
	a.say("%s is broken; it is free when its holder has let go, or in %v", t.what(), rec.TTL)
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
	now, v := a.clk.Wall(), t.view
	a.say("%s is %s by %s since %s (%s)", t.what(), v.State, v.Holder, at(*v.since, now), ago(*v.since, now))
	if info := v.infoLine(); info != "" {
		a.say("  %s", info)
	}
	if t.key != v.Name {
		a.say("  the session %s ends, with all that it keeps", t.key)
	}
	ttl := v.ttl()
	a.say("the holder learns of a break at its next renewal; until then, %v at most, it may still be running and believe that it holds %s", ttl, v.Name)
	if b.grace > 0 && b.grace < ttl {
		a.say("with --grace %v another may start before that: two may work at once", b.grace)
	}
}

// confirm asks on a terminal, and refuses without one, with what to do instead.
func (a *app) confirm(ctx context.Context, question, declined, instead string) error {
	if !term.IsTerminal(int(a.in.Fd())) {
		return usage("nobody can be asked here: %s", instead)
	}
	fmt.Fprintf(a.err, "leasehold: %s? [y/N] ", question)
	answers := make(chan string, 1)
	go func() { // ends with the program, if nobody answers
		line, _ := bufio.NewReader(a.in).ReadString('\n')
		answers <- line
	}()
	select {
	case answer := <-answers:
		if answer = strings.ToLower(strings.TrimSpace(answer)); answer == "y" || answer == "yes" {
			return nil
		}
		return &exitError{exitNo, errors.New(declined)}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// countDown waits, and ends early with an error when the hold is not the current one any more.
func (a *app) countDown(ctx context.Context, st store.Store, b breaking) error {
	end := a.clk.Now().Add(b.in)
	onTerminal := term.IsTerminal(int(a.err.Fd())) && !a.quiet()
	if onTerminal {
		defer fmt.Fprintln(a.err)
	} else {
		a.say("breaking %s in %v; an interrupt leaves it alone", b.name, b.in)
	}
	for {
		left := end.Sub(a.clk.Now())
		if left <= 0 {
			return nil
		}
		if onTerminal {
			fmt.Fprintf(a.err, "\r\x1b[Kleasehold: breaking %s in %v; ctrl-C leaves it alone", b.name, left.Round(time.Second))
		}
		if err := clock.Sleep(ctx, a.clk, min(left, time.Second)); err != nil {
			return err
		}
		if _, err := a.current(ctx, st, b); err != nil {
			return err
		}
	}
}
