package main

import (
	"cmp"
	"iter"
	"math/rand/v2"
	"slices"
	"time"
)

// fault is something that is done to a worker, to a hold, to what supervises a family, or to the
// store.
type fault struct {
	at      time.Duration // from the start of the run
	kind    faultOf
	slot    int           // of the worker or the supervisor that it strikes
	name    int           // if not negative: it strikes whoever holds this name instead
	stopped time.Duration // how long a stop lasts
}

type faultOf string

const (
	faultKill    faultOf = "kill"
	faultStop    faultOf = "stop"
	faultBreak   faultOf = "break"   // an operator breaks the hold on name
	faultDelete  faultOf = "delete"  // an outsider deletes the record of the hold on name
	faultFree    faultOf = "free"    // an outsider edits it: nobody has it
	faultEdit    faultOf = "edit"    // an outsider puts another holder into it
	faultRestore faultOf = "restore" // an outsider puts the record of an earlier term in its place
	faultKind    faultOf = "kind"    // somebody wants name as another kind

	faultSupervisor faultOf = "supervisor" // a supervisor is killed
	faultGuard      faultOf = "guard"      // one of its guards is
	faultBoth       faultOf = "both"       // it and one of its guards are
	// Both guards are, and it is when there are new ones.
	faultGuards         faultOf = "guards"
	faultStopSupervisor faultOf = "stop supervisor" // it is stopped
	faultStopGuard      faultOf = "stop guard"      // one of its guards is
	// It is stopped, and one of its guards is killed.
	faultStopBoth faultOf = "stop both"

	faultFailover faultOf = "failover" // the server that leads is killed, and another one leads
)

// familyFaults are those that strike supervisors.
var familyFaults = []faultOf{faultSupervisor, faultGuard, faultBoth, faultGuards, faultStopSupervisor, faultStopGuard, faultStopBoth}

// plan draws the faults of a run.
func plan(c config) []fault {
	all := slices.Concat(c.planWorkers(), c.planFamilies(), c.planFailovers())
	slices.SortStableFunc(all, func(a, b fault) int { return cmp.Compare(a.at, b.at) })
	return all
}

// planWorkers draws five faults in a TTL on average, half of them at whoever holds a name then.
func (c config) planWorkers() (all []fault) {
	rng := rand.New(rand.NewPCG(c.Seed, 0))
	for at := range c.times(rng, c.TTL/5) {
		f := fault{at: at, kind: faultKill, slot: rng.IntN(c.Procs), name: -1}
		if rng.IntN(2) == 0 {
			f.name = rng.IntN(c.Names)
		}
		switch k := rng.IntN(22); {
		case k < 8:
			f.kind, f.stopped = faultStop, stopFor(rng, c.TTL)
		case k < 16:
			f.kind = [...]faultOf{faultBreak, faultBreak, faultBreak, faultDelete, faultFree, faultEdit, faultRestore, faultKind}[k-8]
			f.name = rng.IntN(c.Names)
		}
		all = append(all, f)
	}
	return all
}

// stopFor draws how long a stop lasts.
func stopFor(rng *rand.Rand, ttl time.Duration) time.Duration {
	most := 3 * ttl
	if rng.IntN(2) == 0 {
		most = ttl // where a lease just holds, or just does not
	}
	return time.Duration(rng.Int64N(int64(most))) + 1
}

// planFamilies draws a fault in a TTL on average, for each name that supervisors want.
func (c config) planFamilies() (all []fault) {
	if c.Commands == 0 {
		return nil
	}
	rng := rand.New(rand.NewPCG(c.Seed, 1<<32))
	jobs := (c.Commands + perJob - 1) / perJob
	for at := range c.times(rng, c.familyTTL()/time.Duration(jobs)) {
		f := fault{at: at, kind: familyFaults[rng.IntN(len(familyFaults))], slot: rng.IntN(c.Commands), name: -1}
		f.stopped = stopFor(rng, c.familyTTL())
		all = append(all, f)
	}
	return all
}

// planFailovers draws a failover for each 40 s, and one for what is left, where there is a server
// to fail.
func (c config) planFailovers() (all []fault) {
	if c.Engine == onFile {
		return nil
	}
	rng := rand.New(rand.NewPCG(c.Seed, 2<<32))
	n := int(c.Duration/(40*time.Second)) + 1
	each := c.Duration / time.Duration(n)
	for i := range n {
		all = append(all, fault{at: each*time.Duration(i) + each/4 + time.Duration(rng.Int64N(int64(each/4))), kind: faultFailover, name: -1})
	}
	return all
}

// times draws instants until the end of a run, with that time between them on average.
func (c config) times(rng *rand.Rand, mean time.Duration) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		for at := time.Duration(0); ; {
			at += time.Duration(rng.ExpFloat64() * float64(mean))
			if at >= c.Duration || !yield(at) {
				return
			}
		}
	}
}
