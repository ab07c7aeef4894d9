package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/lease"
)

// replica is one process. Its managers elect nobody themselves.
type replica struct {
	config  *rest.Config
	leases  *lease.Manager
	name    string          // of the lease, as LeaderElectionID
	options manager.Options // of the manager that runs on every replica

	// runnables adds to a manager what it runs: with no term what every replica does, and otherwise what the leader does. The
	// rule is the one of LeaderElectionRunnable: checked makes sure that nothing gets to the wrong side.
	runnables func(mgr manager.Manager, term *election.Term) error
}

// run runs the replica until ctx is done: then the leader's work has returned, and after it the name was released.
func (r *replica) run(ctx context.Context) error {
	always, err := r.manager(r.options, nil)
	if err != nil {
		return err
	}
	// One ends the other. The candidate is a runnable of the manager that runs on every replica.
	err = always.Add(everywhere(func(ctx context.Context) error {
		err := election.Run(ctx, r.leases, r.name, election.Callbacks{OnStartedLeading: r.lead, OnStopTimeout: stuck}, election.Options{})
		if ctx.Err() != nil {
			return nil
		}
		return err
	}))
	if err != nil {
		return err
	}
	return always.Start(ctx)
}

// lead runs the leader's manager for one term. It returns when all that it runs has returned: only then may the name be let go.
func (r *replica) lead(ctx context.Context, term election.Term) {
	mgr, err := r.manager(manager.Options{Metrics: metricsserver.Options{BindAddress: "0"}}, &term)
	if err == nil {
		err = mgr.Start(ctx)
	}
	if err != nil {
		ctrl.Log.Error(err, "leading has ended", "term", term.Token)
	}
}

// manager makes a manager. It waits for its runnables without a limit: OnStopTimeout is what ends the process when they don't return.
func (r *replica) manager(opts manager.Options, term *election.Term) (manager.Manager, error) {
	forever := -time.Second
	opts.LeaderElection, opts.GracefulShutdownTimeout = false, &forever
	mgr, err := manager.New(r.config, opts)
	if err != nil {
		return nil, err
	}
	return mgr, r.runnables(checked{mgr, term != nil}, term)
}

// stuck is called when the leader's work has not returned in time, before another one may lead. client-go's users end the
// process whenever they lose the lease; here it is the last resort.
func stuck(term election.Term, cause error) {
	fmt.Fprintf(os.Stderr, "controller-runtime: the work of term %d doesn't stop: %v\n", term.Token, cause)
	os.Exit(1)
}

// everywhere is a runnable that needs no leader.
type everywhere func(context.Context) error

// Start implements [manager.Runnable].
func (f everywhere) Start(ctx context.Context) error { return f(ctx) }

// NeedLeaderElection implements [manager.LeaderElectionRunnable].
func (everywhere) NeedLeaderElection() bool { return false }

var errWrongSide = errors.New("NeedLeaderElection says otherwise")

// checked is a manager for one side: the leader's, or that of every replica.
type checked struct {
	manager.Manager
	leading bool
}

// Add adds a runnable if it belongs here by the rule of controller-runtime: what doesn't say whether it needs a leader does.
func (c checked) Add(x manager.Runnable) error {
	says, ok := x.(manager.LeaderElectionRunnable)
	if needs := !ok || says.NeedLeaderElection(); needs != c.leading {
		return fmt.Errorf("%T on the side where leading is %v: %w", x, c.leading, errWrongSide)
	}
	return c.Manager.Add(x)
}
