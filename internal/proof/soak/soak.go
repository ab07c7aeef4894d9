//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/soak/resources"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// patience is how long what has to happen at the end may take, beyond a TTL: on a machine that is
// busy with others, everything takes its time. How soon a name was taken again is in the report.
const patience = 2 * time.Minute

// poll is how late, past its TTL, a name may be taken again by a machine that is in time.
const poll = time.Second

// run is a whole run. It writes its report to out, and returns it. An error is about the run
// itself; the report may be nil then.
func run(ctx context.Context, c config, out io.Writer) (r *report, err error) {
	dir, err := os.MkdirTemp(c.Dir, "leasehold-soak-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err == nil && len(r.violations) == 0 {
			err = os.RemoveAll(dir)
		} else {
			fmt.Fprintf(out, "what is left to look at is in %s\n", dir)
		}
	}()
	cluster, target, err := c.launch(ctx, dir)
	if err != nil {
		return nil, err
	}
	if cluster != nil {
		defer cluster.stop()
	}
	st, finish, err := openStore(ctx, c.Engine, c.Store)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, finish()) }()
	host, err := startResources(ctx, c, dir, st)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	f := &fleet{config: c, dir: dir, host: host, hist: newHistory(), clk: clock.System(), slots: make([]*process, c.Procs)}
	fmt.Fprintf(out, "soak: %d processes, %d names, %d supervisors, %v, TTL %v, seed %d, store %s %s\n",
		c.Procs, c.Names, c.Commands, c.Duration, c.TTL, c.Seed, c.Engine, c.Store)

	t := &tormentor{fleet: f, st: st, cluster: cluster, seen: map[string]store.Record{}, families: newFamilies()}
	if t.sups, err = supervise(ctx, c, dir, target, f.clk, f.wrong); err != nil {
		return nil, err
	}
	for slot := range c.Procs {
		f.wrong(f.start(slot))
	}
	r = t.watched(ctx, out)
	if len(r.violations) == 0 && ctx.Err() == nil {
		r.settle, r.late, err = f.settle(ctx)
		f.wrong(err)
	}
	deaf, orphans := t.sups.finish(c.familyTTL() + patience)
	r.orphans = orphans
	r.stuck = f.finish(c.TTL+patience) + deaf
	if err := errors.Join(f.errs...); err != nil {
		r.violate("%v", err)
	}
	r.conclude(context.WithoutCancel(ctx), t)
	r.print(out, t)
	return r, ctx.Err()
}

// startResources starts the guarded resources, of which the online guards ask the store.
func startResources(ctx context.Context, c config, dir string, st store.Store) (*resources.Host, error) {
	var source fence.Source
	if c.Bug != bugUnfenced {
		source = lease.Source(st)
	}
	dir = filepath.Join(dir, "resources")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	return resources.Start(ctx, dir, c.Kinds, source)
}

// watched torments the fleet and looks now and then at what has happened, so as to end at the first
// violation.
func (t *tormentor) watched(ctx context.Context, out io.Writer) *report {
	interval := min(max(t.Duration/30, time.Second), 10*time.Second)
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer cancel()
		t.torment(ctx, plan(t.config))
	})
	wg.Go(func() { t.stalls.watch(ctx, t.clk) })
	r := &report{}
	for clock.Sleep(ctx, t.clk, interval) == nil {
		if v, _ := t.look(); len(v.violations) > 0 {
			r.violations = v.violations
			cancel()
		}
		t.progress(out)
	}
	wg.Wait()
	return r
}

func (t *tormentor) progress(out io.Writer) {
	t.hist.mu.Lock()
	terms, sections, acks := len(t.hist.terms), len(t.hist.sections), len(t.hist.acks)
	t.hist.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(out, "  %d kills, %d stops, %d breaks, %d by outsiders; %d terms, %d critical sections, %d guarded writes\n",
		t.kills, t.stops, t.breaks, t.meddled+t.otherwise, terms, sections, acks)
}

// look judges all that has happened until now, and counts what the guarded files have accepted.
func (t *tormentor) look() (v verdict, writes int) {
	t.hist.mu.Lock()
	v = t.hist.judge(t.TTL, t.clk.Now())
	acks := t.hist.acks // before the files are read, so that each must be there
	t.hist.mu.Unlock()
	for i := range t.Names {
		accepted, err := readGuard(filepath.Join(t.dir, name(i)))
		if err != nil {
			v.violate("%s: %v", name(i), err)
		}
		v.guarded(name(i), accepted, acks)
		writes += len(accepted)
	}
	t.judgeFamilies(&v)
	return v, writes
}

// judgeFamilies sees that nothing of an earlier term lived beside a later one, unless the machine
// stood still for longer than what lies between the end of the one and the begin of the other.
func (t *tormentor) judgeFamilies(v *verdict) {
	for slot := 0; slot < t.Commands; slot += perJob {
		if err := t.families.follow(job(slot), filepath.Join(t.sups.ticks, job(slot))); err != nil {
			v.violate("%s: %v", job(slot), err)
		}
	}
	for _, b := range t.families.overlaps() {
		if stalled(t.stalls.seen(), b, t.familyTTL()) >= t.familyTTL()/5 {
			v.lateEnds = append(v.lateEnds, b)
		} else {
			v.neverEnds++
			v.violate("%v", b)
		}
	}
}

// settle waits until every name has been taken once more, now that no fault strikes any more, and
// until the guarded resources have been tried: on a busy machine little happens in the time of a
// run. It returns the longest time that a name was free before though somebody wanted it, which is
// more than allowed if that never happens, and by how much the machine was late meanwhile.
func (f *fleet) settle(ctx context.Context) (longest, late time.Duration, err error) {
	w, err := newWitness(f.clk, f.dir)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	start := f.clk.Now()
	limit := start.Add(longHold(f.TTL) + f.TTL + patience)
	wait := func(done func() bool) bool {
		for !done() {
			if f.clk.Now() >= limit || err != nil || ctx.Err() != nil {
				return false
			}
			err = w.look(ctx)
		}
		return true
	}
	for i := range f.Names {
		var free time.Duration
		taken := func() (ok bool) { free, ok = f.hist.freeFor(name(i), start); return ok }
		if !wait(taken) {
			free = f.clk.Now().Sub(start)
		}
		longest = max(longest, free)
	}
	late = w.late
	wait(func() bool { return f.hist.tried(f.host.Addresses) }) // audit sees what hasn't been
	return longest, late, err
}

// freeFor returns how long a name was free though somebody wanted it, counted from start at the
// earliest, before it was taken for the first time after start, and whether it was.
func (h *history) freeFor(name string, start clock.Instant) (time.Duration, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := len(h.terms) - 1; i >= 0; i-- {
		if t := h.terms[i]; t.name == name && t.at > start {
			return t.at.Sub(max(h.freed[name], t.wanted, start)), true
		}
	}
	return 0, false
}

// conclude judges the whole history.
func (r *report) conclude(ctx context.Context, t *tormentor) {
	v, writes := t.look()
	r.resources = t.audit(ctx, &v)
	if most := t.TTL + poll + r.late; r.settle > most {
		v.violate("a name that somebody wanted was free for %v when the faults were over: want %v at most", r.settle, most)
	}
	if r.stuck > 0 {
		v.violate("%d processes did not end when they were told", r.stuck)
	}
	t.hist.mu.Lock()
	defer t.hist.mu.Unlock()
	// All processes have ended, and so has all that is to be judged.
	if n := len(t.hist.inside); n > 0 {
		v.violate("of %d processes it is not known when they left", n)
	}
	failures := map[string]int{}
	for _, f := range t.hist.failures {
		if !t.hist.excused(f.at) {
			failures[f.text]++
		}
	}
	for what, n := range failures {
		v.violate("%d times: %s", n, what)
	}
	for _, o := range r.orphans {
		v.violate("an orphan: %s", o)
	}
	if t.Commands > 0 && t.families.count() == 0 {
		v.violate("no supervisor ever ran its command; they ended with %v", t.sups.ends())
	}
	for _, earlier := range r.violations {
		if !slices.Contains(v.violations, earlier) {
			v.violations = append(v.violations, earlier)
		}
	}
	r.verdict, r.writes = v, writes
}
