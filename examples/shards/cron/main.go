// Command cron is a fleet of workers that fire 10,000 jobs on their schedules. Each job is fired by
// the worker that owns its slice, under the slice's token. While the jobs run, a worker leaves,
// another one stops at once, and new ones join:
//
//	go run ./examples/shards/cron
//
// The table of jobs is in a database, beside the work. Each row has when its job is due, and the
// token under which it was fired last. A job is fired in the transaction that sets when it is due
// next, on condition that its row has not been fired under a later token. So each tick of each job
// is fired exactly once in that table, also by a worker that was paused in the middle.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/file"
)

const (
	space = "cron"
	ttl   = 3 * time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	_, err := play(ctx, os.Stdout, 10_000)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cron:", err)
		os.Exit(1)
	}
}

// result is what became of the jobs.
type result struct {
	audit
	byWorker map[string]int // how many were fired by each
}

// play runs the fleet for some seconds.
func play(ctx context.Context, out io.Writer, jobs int) (*result, error) {
	dir, err := os.MkdirTemp("", "cron")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	db, err := openJobs(ctx, filepath.Join(dir, "jobs.db"), jobs)
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }()
	st, err := file.Open(ctx, filepath.Join(dir, "leases.db"), file.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = st.Close() }()

	r := &result{byWorker: map[string]int{}}
	f := &fleet{st: st, db: db, out: out}
	defer f.end()
	for _, step := range []func(context.Context) error{
		func(ctx context.Context) error { return errors.Join(f.join(ctx), f.join(ctx), f.join(ctx)) },
		f.join, f.leave, f.halt, f.join,
	} {
		if err := errors.Join(step(ctx), f.settled(ctx), clock.Sleep(ctx, clock.System(), 2*time.Second)); err != nil {
			return nil, err
		}
	}
	f.end()
	for _, w := range f.all {
		r.byWorker[w.name] = w.fired
	}
	if r.audit, err = db.audit(ctx); err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "%d jobs were fired %d times by %d workers: %d ticks were fired twice, %d were skipped, and the latest was %v late\n",
		jobs, r.fired, len(r.byWorker), r.twice, r.skipped, r.latest.Round(time.Millisecond))
	return r, nil
}

// worker fires the jobs whose slices it owns.
type worker struct {
	name  string
	owner *shard.Owner
	m     *lease.Manager
	stop  context.CancelFunc
	done  chan struct{}
	fired int // read when done
	err   error
}

// fleet is all workers that ever were, those that have left among them.
type fleet struct {
	st  store.Store
	db  *jobs
	out io.Writer
	all []*worker
}

func (f *fleet) join(ctx context.Context) error {
	w := &worker{name: fmt.Sprintf("worker %d", len(f.all)+1), done: make(chan struct{})}
	var err error
	if w.m, err = lease.NewManager(f.st, lease.Options{TTL: ttl}); err != nil {
		return err
	}
	w.owner, err = shard.Join(ctx, w.m, shard.Space{Name: space, Hashed: true, Slices: 64}, shard.Worker{Name: w.name})
	if err != nil {
		return errors.Join(err, w.m.Close())
	}
	fmt.Fprintln(f.out, w.name, "joins")
	f.all = append(f.all, w)
	var run context.Context
	run, w.stop = context.WithCancel(context.WithoutCancel(ctx))
	go w.run(run, f.db)
	return nil
}

// leave has the first worker that is there leave gracefully.
func (f *fleet) leave(ctx context.Context) error {
	w := f.first()
	fmt.Fprintln(f.out, w.name, "leaves")
	err := w.owner.Leave(ctx)
	w.stop()
	<-w.done
	return errors.Join(err, w.m.Close(), w.err)
}

// halt has a worker stop at once, without handing over.
func (f *fleet) halt(context.Context) error {
	w := f.first()
	fmt.Fprintln(f.out, w.name, "stops")
	w.stop()
	<-w.done
	return errors.Join(w.owner.Close(), w.m.Close(), w.err)
}

func (f *fleet) first() *worker {
	for _, w := range f.all {
		select {
		case <-w.done:
		default:
			return w
		}
	}
	return nil
}

// end ends all workers.
func (f *fleet) end() {
	var all sync.WaitGroup
	for _, w := range f.all {
		all.Go(func() {
			w.stop()
			<-w.done
			_ = errors.Join(w.owner.Close(), w.m.Close()) // what it had expires else
		})
	}
	all.Wait()
}

// settled waits until every slice has an owner that it stays with.
func (f *fleet) settled(ctx context.Context) error {
	for {
		moving := false
		for e, err := range shard.Map(ctx, f.st, space) {
			if err != nil {
				return err
			}
			moving = moving || e.Owner == "" || e.Next != ""
		}
		if !moving {
			return nil
		}
		if err := clock.Sleep(ctx, clock.System(), 20*time.Millisecond); err != nil {
			return err
		}
	}
}
