package main

import (
	"math/rand/v2"
	"time"
)

// fault is something that is done to a worker or to a hold.
type fault struct {
	at      time.Duration // from the start of the run
	kind    faultOf
	slot    int           // of the worker it strikes
	name    int           // if not negative: it strikes whoever holds this name instead
	stopped time.Duration // how long a stop lasts
}

type faultOf string

const (
	faultKill   faultOf = "kill"
	faultStop   faultOf = "stop"
	faultBreak  faultOf = "break"  // an operator breaks the hold on name
	faultDelete faultOf = "delete" // an outsider deletes the record of the hold on name
	faultFree   faultOf = "free"   // an outsider edits it: nobody has it
	faultKind   faultOf = "kind"   // somebody wants name as another kind
)

// plan draws the faults of a run: five in a TTL on average, half of them at whoever holds a name then.
func plan(c config) []fault {
	rng := rand.New(rand.NewPCG(c.Seed, 0))
	mean := float64(c.TTL) / 5
	var all []fault
	for at := time.Duration(0); ; {
		at += time.Duration(rng.ExpFloat64() * mean)
		if at >= c.Duration {
			return all
		}
		f := fault{at: at, kind: faultKill, slot: rng.IntN(c.Procs), name: -1}
		if rng.IntN(2) == 0 {
			f.name = rng.IntN(c.Names)
		}
		switch k := rng.IntN(20); {
		case k < 8:
			f.kind = faultStop
			most := 3 * c.TTL
			if rng.IntN(2) == 0 {
				most = c.TTL // where a lease just holds, or just does not
			}
			f.stopped = time.Duration(rng.Int64N(int64(most))) + 1
		case k < 14:
			f.kind = [...]faultOf{faultBreak, faultBreak, faultBreak, faultDelete, faultFree, faultKind}[k-8]
			f.name = rng.IntN(c.Names)
		}
		all = append(all, f)
	}
}
