package elections

import (
	"context"
	"errors"
	"fmt"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
)

// ours runs candidates of package election. What it promises is demanded of every term.
func ours(x timing) contender {
	return candidates(x, func(w *world, format string, args ...any) {
		w.t.Errorf("seed %d: %s:\n%s", w.plan.seed, fmt.Sprintf(format, args...), w.told())
	})
}

func candidates(x timing, wrong func(w *world, format string, args ...any)) contender {
	var last fence.Token
	return func(w *world, n *node) func() {
		opts := x.options()
		opts.Name, opts.Clock = n.name, n.clk
		m, err := lease.NewManager(n.net, opts)
		if err != nil {
			w.t.Fatal(err)
		}
		lead := func(ctx context.Context, term election.Term) {
			r := &reign{n: n, ctx: ctx, valid: func() bool { return term.Check() == nil }}
			if overlap := w.begins(r); overlap != "" {
				wrong(w, "%s", overlap)
			}
			w.mu.Lock()
			before := last
			last = term.Token
			w.mu.Unlock()
			if term.Token <= before {
				wrong(w, "token %d after %d", term.Token, before)
			}
			<-ctx.Done()
			if errors.Is(context.Cause(ctx), lease.ErrLost) && !n.wasStopped(x.stopMargin().StopMargin) {
				wrong(w, "%s was told to stop when its validity was over", n.name)
			}
			w.ends(r)
		}
		ctx, cancel := context.WithCancel(w.t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			if err := election.Run(ctx, m, "job", election.Callbacks{OnStartedLeading: lead}, x.stopMargin()); !errors.Is(err, context.Canceled) {
				w.t.Errorf("%s: %v", n.name, err)
			}
		}()
		return func() {
			cancel()
			<-done
			if err := m.Close(); err != nil {
				w.t.Error(err)
			}
		}
	}
}
