// Package controllerruntime has the replicas of a controller elect their leader by Leasehold, in
// place of controller-runtime's own election.
//
// Each replica has one manager, whose caches run always. Controllers run while the replica leads.
// When it stops leading, they stop, and the process stays. The next term makes new ones out of the
// caches as they are then, without a list of what is there. Each term has a fencing token, which is
// in the context of Reconcile.
package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/lease"
)

// Add has mgr be a candidate for name while it runs. mgr is made with LeaderElection false, and
// with GracefulShutdownTimeout -1: otherwise Start may return, and the name be released, before
// what runs in the term has returned.
//
// setup is called at the beginning of each term with a manager for that term: what is added to it
// runs in the term, whether or not it says that it needs a leader. All else is mgr's. An error of
// setup, or of what it has added, ends the term, and the candidate campaigns again after a rest.
//
// When the term ends, the context of everything in it ends, and the name is released when all has
// returned. If that takes too long, the process exits with 1, unless opts.OnStopTimeout is set:
// another replica is about to lead.
func Add(mgr manager.Manager, leases *lease.Manager, name string, setup func(manager.Manager) error, opts Options) error {
	log := mgr.GetLogger().WithValues("lease.name", name)
	cb := election.Callbacks{OnStopTimeout: opts.OnStopTimeout, OnError: func(err error) { log.Error(err, "standing for election") }}
	if cb.OnStopTimeout == nil {
		cb.OnStopTimeout = func(term election.Term, cause error) {
			fmt.Fprintf(os.Stderr, "%s: what runs in the term %d doesn't stop: %v\n", name, term.Token, cause)
			os.Exit(1)
		}
	}
	cb.OnStartedLeading = func(ctx context.Context, term election.Term) {
		log := log.WithValues("lease.token", uint64(term.Token), "lease.holder", term.Leader)
		t := &inTerm{Manager: mgr}
		defer t.forget(func(err error) { log.Error(err, "a handler of the term stays") })
		err := setup(t)
		if err == nil {
			err = t.run(context.WithValue(ctx, key{}, term))
		}
		if err != nil {
			log.Error(err, "the term has ended")
		}
	}
	return mgr.Add(candidate(func(ctx context.Context) error {
		for _, kind := range opts.Warm {
			if _, err := mgr.GetCache().GetInformer(ctx, kind); err != nil {
				return fmt.Errorf("%s: the cache of %T: %w", name, kind, err)
			}
		}
		err := election.Run(ctx, leases, name, cb, opts.Election)
		if ctx.Err() != nil {
			return nil
		}
		return err
	}))
}

// Options of a candidate. The zero value is one among equals.
type Options struct {
	Election election.Options

	// Warm are objects of the kinds whose caches fill before the replica first leads. The cache of
	// another kind fills in the first term that uses it, and stays.
	Warm []client.Object

	// OnStopTimeout is called when what runs in a term doesn't stop in time; see
	// [election.Callbacks].
	OnStopTimeout func(term election.Term, cause error)
}

type key struct{}

// Term returns the term in which Reconcile, or another part of a term, was called with ctx. It
// returns false outside of one.
func Term(ctx context.Context) (election.Term, bool) {
	term, ok := ctx.Value(key{}).(election.Term)
	return term, ok
}

// Guard calls r only while the term of its context is valid. A controller that is stopped hands
// what is left in its queue to its reconciler: with Guard that returns an error.
func Guard[request comparable](r reconcile.TypedReconciler[request]) reconcile.TypedReconciler[request] {
	return reconcile.TypedFunc[request](func(ctx context.Context, req request) (reconcile.Result, error) {
		term, ok := Term(ctx)
		switch {
		case !ok:
			return reconcile.Result{}, reconcile.TerminalError(errors.New("called outside of a term: was its controller added to the manager that setup gets?"))
		case ctx.Err() != nil:
			return reconcile.Result{}, reconcile.TerminalError(context.Cause(ctx))
		case term.Check() != nil:
			return reconcile.Result{}, reconcile.TerminalError(term.Check())
		}
		return r.Reconcile(ctx, req)
	})
}

// candidate runs on every replica.
type candidate func(context.Context) error

func (f candidate) Start(ctx context.Context) error { return f(ctx) }
func (candidate) NeedLeaderElection() bool          { return false }

// inTerm is a manager for one term.
type inTerm struct {
	manager.Manager
	mu       sync.Mutex
	parts    []manager.Runnable
	handlers []func() error // that take the handlers of the term off the informers
}

func (t *inTerm) Add(r manager.Runnable) error {
	t.parts = append(t.parts, r)
	return nil
}

// GetControllerOptions lets a controller have the name of that of the term before.
func (t *inTerm) GetControllerOptions() config.Controller {
	o, again := t.Manager.GetControllerOptions(), true
	o.SkipNameValidation = &again
	return o
}

func (t *inTerm) GetCache() cache.Cache { return termCache{t.Manager.GetCache(), t} }

// run blocks until all parts have returned.
func (t *inTerm) run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var running sync.WaitGroup
	for _, part := range t.parts {
		running.Go(func() {
			if err := part.Start(ctx); err != nil {
				stop(err)
			}
		})
	}
	<-ctx.Done()
	running.Wait()
	return context.Cause(ctx)
}

func (t *inTerm) forget(failed func(error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, remove := range t.handlers {
		if err := remove(); err != nil {
			failed(err)
		}
	}
}

// termCache and informer note the handlers of a term: controller-runtime never takes them off.
type termCache struct {
	cache.Cache
	t *inTerm
}

func (c termCache) GetInformer(ctx context.Context, obj client.Object, opts ...cache.InformerGetOption) (cache.Informer, error) {
	i, err := c.Cache.GetInformer(ctx, obj, opts...)
	return informer{i, c.t}, err
}

type informer struct {
	cache.Informer
	t *inTerm
}

func (i informer) AddEventHandlerWithOptions(h toolscache.ResourceEventHandler, o toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	r, err := i.Informer.AddEventHandlerWithOptions(h, o)
	if err == nil {
		i.t.mu.Lock()
		defer i.t.mu.Unlock()
		i.t.handlers = append(i.t.handlers, func() error { return i.Informer.RemoveEventHandler(r) })
	}
	return r, err
}
