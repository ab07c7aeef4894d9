package admiral

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/internal/pairs"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Options of a checker. The zero value is right for a program that asks [State.Guard] before each
// write.
type Options struct {
	// WarmUp is for how long after its start an instance is not active, though it may hold the
	// lease, which it renews.
	WarmUp time.Duration

	// Early is how long before the end of the lease's validity the state turns read-only, for what
	// needs time to stop: 0 by default. It has to leave time for a renewal and one retry.
	Early time.Duration

	// Renew is the time from one renewal to the next: [Config.Renew] by default.
	Renew time.Duration

	// Work, if set, is called when a term begins, and runs while this instance is active. It has to
	// return once the context of the term is done. Only then the lease is released or handed over.
	// If it returns an error, sooner or then, the lease is released and Run returns that error.
	// With nil, the instance stands by again.
	Work func(Term) error

	// Clock is where time comes from; [clock.System] by default.
	Clock clock.Clock
}

// Checker is the state checker that holds a lease. Make one with [New].
type Checker struct {
	open func(context.Context) (store.Store, error)
	cfg  Config
	opts Options
}

// New returns a checker on the store that open opens; Run closes it. An error of open does not end
// Run: the state is read-only with that reason, and the store is opened again after WaitTime. New
// does no I/O. Its errors name the key or field of cfg or opts that is wrong, and show the
// arithmetic of times that don't fit.
func New(open func(context.Context) (store.Store, error), cfg Config, opts Options) (*Checker, error) {
	if open == nil {
		return nil, errors.New("admiral: New needs a function that opens the store")
	}
	if err := cfg.check(Leasehold); err != nil {
		return nil, err
	}
	if opts.Clock == nil {
		opts.Clock = clock.System()
	}
	if opts.Renew == 0 {
		opts.Renew = cfg.Renew()
	}
	if opts.WarmUp < 0 || opts.Early < 0 {
		return nil, fmt.Errorf("warm-up %v, early %v: want durations that are not negative", opts.WarmUp, opts.Early)
	}
	t := protocol.Timing{TTL: cfg.TTL(), Renew: opts.Renew}.WithDefaults()
	if err := t.Check(); err != nil {
		return nil, fmt.Errorf("waitTimeInSeconds × failureThreshold: %w", err)
	}
	if need := opts.Early + t.Renew + 2*t.Attempt; need > t.Validity() {
		return nil, fmt.Errorf("early %v is too long: a lease of %v (waitTimeInSeconds × failureThreshold) is valid for %v, and a renewal "+
			"and one retry before that need %v + %v + 2·%v = %v", opts.Early, t.TTL, t.Validity(), opts.Early, t.Renew, t.Attempt, need)
	}
	return &Checker{open: open, cfg: cfg, opts: opts}, nil
}

// checkNames refuses what no row, or no id of a holder, can carry.
func checkNames(c Config) error {
	const most = 200 // so that the keys made from it fit
	if err := driver.CheckKey(c.LeaseName); err != nil || len(c.LeaseName) > most || keyspace.Reserved(c.LeaseName) {
		return fmt.Errorf("leaseName %.40q: want 1 to %d printable characters that don't begin with a dot", c.LeaseName, most)
	}
	const mostPod = 100
	unfit := func(r rune) bool { return !unicode.IsPrint(r) || r == '/' }
	if len(c.PodIdentifier) > mostPod || !utf8.ValidString(c.PodIdentifier) || strings.ContainsFunc(c.PodIdentifier, unfit) {
		return fmt.Errorf("podIdentifier %.40q: want 1 to %d printable characters, without a slash", c.PodIdentifier, mostPod)
	}
	return nil
}

// The reasons for being read-only that don't depend on a row.
const (
	reasonStopped  = "the state checker has stopped"
	reasonHandOver = "the lease is being handed over"
	reasonWorkOver = "what runs while this instance is active has ended"
)

// Run implements [StateChecker].
func (c *Checker) Run(ctx context.Context, s *State) (err error) {
	r := &run{c: c, s: s, clk: c.opts.Clock, orders: make(chan order), status: api.InstancePassive}
	r.warm = r.clk.Now().Add(c.opts.WarmUp)
	s.set(func(st *Status) { st.Lease, st.Pod = c.cfg.LeaseName, c.cfg.PodIdentifier })
	defer s.demote(reasonStopped)
	inner, err := r.reach(ctx)
	if err != nil {
		return nil // ctx is done
	}
	defer func() { err = errors.Join(err, inner.Close()) }()
	s.setClock(inner)
	defer s.setClock(nil)
	r.st = &observed{Store: inner, r: r, seen: lease.NewObserver(inner, lease.ObserverOptions{Clock: r.clk})}
	r.m, err = lease.NewManager(r.st, lease.Options{
		TTL: c.cfg.TTL(), Renew: c.opts.Renew, Name: c.cfg.PodIdentifier, Clock: r.clk,
		Outlived: true, // what an instance makes active may go on without it
		Info:     map[string]string{pairs.InfoPod: c.cfg.PodIdentifier, pairs.InfoRegion: c.cfg.runsIn()},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.m.Close()) }()
	ctx, cancel := context.WithCancel(ctx)
	listening := make(chan struct{})
	go func() {
		defer close(listening)
		r.listen(ctx)
	}()
	defer func() { cancel(); <-listening }()
	return r.loop(ctx)
}

// loop stands by, is active, and stands by again.
func (r *run) loop(ctx context.Context) error {
	if err := r.keepOut(ctx); err != nil {
		return nil
	}
	for ctx.Err() == nil {
		l, err := r.campaign(ctx)
		switch {
		case err == nil:
			if err := r.serve(ctx, l); err != nil {
				return err
			}
		case errors.Is(err, errOperator):
			err = r.await(ctx, func(rec store.Record) bool { return rec.Owner != SkipOwner }, clock.NoDeadline)
			if err != nil {
				return nil
			}
		case ctx.Err() == nil: // a row that can't be read, say
			r.s.trouble(err)
			_ = clock.Sleep(ctx, r.clk, r.c.cfg.WaitTime)
		}
	}
	return nil
}

// reach opens the store, however often that takes. It fails only when ctx is done.
func (r *run) reach(ctx context.Context) (store.Store, error) {
	for {
		st, err := r.c.open(ctx)
		if err == nil {
			return st, nil
		}
		if ctx.Err() == nil {
			r.s.trouble(err)
			_ = clock.Sleep(ctx, r.clk, r.c.cfg.WaitTime)
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}
