package shards

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
	"github.com/leasehold/leasehold/internal/shardview"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/store"
)

// waiting is how long a command waits until what it has ordered is done.
type waiting struct {
	wait   time.Duration
	noWait bool
}

func (w *waiting) add(cmd *cobra.Command, what string) {
	w.wait = time.Minute
	cli.DurationVarP(cmd.Flags(), &w.wait, "wait", "w", w.wait, "how long it may take until "+what)
	cmd.Flags().BoolVarP(&w.noWait, "no-wait", "n", false, "don't wait until "+what)
}

func (w *waiting) check(cmd *cobra.Command) error {
	switch {
	case w.wait <= 0:
		return cli.Usage("--wait %v: want a duration above 0, or --no-wait", w.wait)
	case w.noWait && cmd.Flags().Changed("wait"):
		return cli.Usage("--no-wait and --wait exclude each other: give one")
	}
	return nil
}

// ctx returns a context that ends with the time that --wait allows, with errLate as its cause.
func (w *waiting) ctx(ctx context.Context, a *app) (context.Context, func()) {
	ctx, end := context.WithCancelCause(ctx)
	stop := a.Clock.AfterFunc(w.wait, func() { end(errLate) })
	return ctx, func() { stop(); end(nil) }
}

// errLate is the cause of a context that ends with --wait.
var errLate = errors.New("it takes longer than --wait")

// late explains what has been ordered and not been done yet, with exit code 75.
func (w *waiting) late(err error, format string, args ...any) error {
	if !errors.Is(err, errLate) {
		return err
	}
	return cli.Exit(cli.ExitConflict, fmt.Errorf("after %v %s", w.wait, fmt.Sprintf(format, args...)))
}

func (a *app) moveCommand() *cobra.Command {
	var to string
	var w waiting
	cmd := &cobra.Command{
		Use:   "move SPACE SLICE --to WORKER",
		Short: "Have a slice go to a worker",
		Long: "Have the owner of SLICE drain it, and pass it on to WORKER. In a hashed space SLICE is a range, as status lists it, or a hash in it\n" +
			"(0x…). A slice that nobody owns is given at once. The assigner keeps to the placement: where a pin says otherwise, the slice comes back.\n\n" +
			"It waits until WORKER owns the slice (--wait); the exit code is 75 if that takes longer: the order stands.",
		Example:           "  leasehold shard move orders 17 --to web2",
		Args:              cli.Want("SPACE", "SLICE"),
		ValidArgsFunction: a.completeSpaces,
		RunE: func(cmd *cobra.Command, args []string) error {
			if to == "" {
				return cli.Usage("--to is missing: `leasehold shard status %s` lists the workers", args[0])
			}
			if err := w.check(cmd); err != nil {
				return err
			}
			return a.withSpace(cmd.Context(), args[0], func(st store.Store) error { return a.move(cmd.Context(), st, args[0], args[1], to, w) })
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "the `WORKER`, by its name, address or holder's id")
	w.add(cmd, "the worker owns it")
	_ = cmd.RegisterFlagCompletionFunc("to", a.completeWorkers)
	return cmd
}

// target is a slice that an operator names.
type target struct {
	key  string // of a space of names
	hash uint64 // in a hashed space
}

// target reads a SLICE.
func (a *app) target(ctx context.Context, st store.Store, space, text string) (target, bool, error) {
	key, hash, hashed, err := shardview.Target(ctx, st, space, text)
	if err != nil && hashed {
		err = cli.Usage("SLICE: %w; `leasehold shard lookup %s KEY -o json` says which slice a key is in", err, space)
	}
	return target{key, hash}, hashed, err
}

func (a *app) move(ctx context.Context, st store.Store, space, slice, to string, w waiting) error {
	t, _, err := a.target(ctx, st, space, slice)
	if err != nil {
		return err
	}
	m, err := shard.Find(ctx, st, space, to)
	if err != nil {
		return err
	}
	if m.Leaving || m.Drained {
		return cli.Exit(cli.ExitNo, fmt.Errorf("worker %s is to own nothing: it is leaving, or drained (`leasehold shard drain %s %s --undo`)", m.Name, space, m.Name))
	}
	began := a.Clock.Now()
	before, err := shard.Await(ctx, st, space, t.key, t.hash, func(shard.Entry) bool { return true })
	if err != nil {
		return err
	}
	if before.Owner == m.Session {
		a.Say("%s owns %s already", m.Name, before.ID())
		return nil
	}
	if err := shard.RequestMoveHash(ctx, st, space, t.key, t.hash, m.Session); err != nil {
		return err
	}
	if w.noWait {
		a.Say("%s is to go to %s", before.ID(), m.Name)
		return nil
	}
	limited, end := w.ctx(ctx, a)
	defer end()
	e, err := shard.Await(limited, st, space, t.key, t.hash, func(e shard.Entry) bool { return e.Owner == m.Session })
	if err != nil {
		return w.late(err, "%s is not %s's yet: `leasehold shard status %s` shows what moves; the order stands", before.ID(), m.Name, space)
	}
	a.Say("%s owns %s (token %d), %v after the order", m.Name, e.ID(), e.Token, a.Clock.Now().Sub(began).Round(time.Millisecond))
	return nil
}

func (a *app) drainCommand() *cobra.Command {
	var undo bool
	var w waiting
	cmd := &cobra.Command{
		Use:   "drain SPACE WORKER",
		Short: "Have a worker hand over all that it owns, until --undo",
		Long: "Have WORKER hand over all that it owns, and get nothing, until --undo: before work on its machine, for instance. It stays a worker.\n" +
			"It waits until WORKER owns nothing (--wait); the exit code is 75 if that takes longer: the order stands. With no other worker that\n" +
			"could take over, WORKER keeps what it has. A worker that is started again is another one, and isn't drained.",
		Example:           "  leasehold shard drain orders web1\n  leasehold shard drain orders web1 --undo",
		Args:              cli.Want("SPACE", "WORKER"),
		ValidArgsFunction: a.completeSpaceAndWorker,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := w.check(cmd); err != nil {
				return err
			}
			return a.withSpace(cmd.Context(), args[0], func(st store.Store) error { return a.drainWorker(cmd.Context(), st, args[0], args[1], undo, w) })
		},
	}
	cmd.Flags().BoolVar(&undo, "undo", false, "let it own slices again")
	w.add(cmd, "the worker owns nothing")
	return cmd
}

func (a *app) completeSpaceAndWorker(cmd *cobra.Command, args []string, text string) ([]string, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return a.completeSpaces(cmd, args, text)
	case 1:
		return a.completeWorkers(cmd, args, text)
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// drainLook is the pause between two looks at what a worker still owns.
const drainLook = 250 * time.Millisecond

func (a *app) drainWorker(ctx context.Context, st store.Store, space, worker string, undo bool, w waiting) error {
	m, err := shard.Find(ctx, st, space, worker)
	if err != nil {
		return err
	}
	if err := shard.Drain(ctx, st, space, m.Session, !undo); err != nil {
		return err
	}
	switch {
	case undo:
		a.Say("%s may own slices again", m.Name)
		return nil
	case w.noWait:
		a.Say("%s is to hand over all that it owns", m.Name)
		return nil
	}
	began := a.Clock.Now()
	limited, end := w.ctx(ctx, a)
	defer end()
	// However long the first look takes: when the time is over, it is said what the worker owns.
	n, err := owned(ctx, st, space, m.Session)
	for err == nil && n > 0 {
		if clock.Sleep(limited, a.Clock, drainLook) != nil {
			err = context.Cause(limited)
			break
		}
		var now int
		if now, err = owned(limited, st, space, m.Session); err == nil {
			n = now
		}
	}
	if err != nil {
		return w.late(err, "%s still owns %d slices: is there another worker with room for them? The order stands", m.Name, n)
	}
	a.Say("%s owns nothing, %v after the order", m.Name, a.Clock.Now().Sub(began).Round(time.Millisecond))
	return nil
}

// owned returns how many slices a worker owns.
func owned(ctx context.Context, st store.Store, space, session string) (n int, err error) {
	all, err := shard.All(ctx, st, space)
	for _, e := range all {
		if e.Owner == session {
			n++
		}
	}
	return n, err
}
