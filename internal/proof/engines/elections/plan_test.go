package elections

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/leasehold/leasehold/store/faulty"
)

const nodes = 3

// plan is what goes wrong in one run: all of it is drawn from the seed before the run begins. Times count from then, in true time.
type plan struct {
	seed  uint64
	nodes [nodes]*nodePlan
	end   time.Duration // of the faults
}

// nodePlan is what goes wrong for one process, on a machine of its own.
type nodePlan struct {
	seed  uint64
	net   []episode // between it and the store; in order
	stops []span    // of the process, as by SIGSTOP; in order
	rates []rate    // of its clock; in order
}

type span struct{ from, to time.Duration }

func (s span) String() string { return fmt.Sprintf("%v to %v", s.from, s.to) }

type rate struct {
	at time.Duration
	to float64
}

// episode is a time of one fault of the network.
type episode struct {
	span
	what        trouble
	there, back time.Duration // slow: the longest ways to the store and back
	over        chan struct{} // closed at its end; made in the bubble of the run
}

type trouble string

const (
	cut  trouble = "cut off"
	mute trouble = "mute" // what it sends is lost
	deaf trouble = "deaf" // what is sent to it is lost
	slow trouble = "slow"
)

// draw makes the plan of a seed, for about twenty times the lease's duration.
func draw(seed uint64, x timing) *plan {
	p := &plan{seed: seed, end: 20 * x.lease}
	for i := range p.nodes {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		upTo := func(d time.Duration) time.Duration { return time.Duration(rng.Int64N(int64(d))) }
		n := &nodePlan{seed: rng.Uint64()}
		for at := upTo(2 * x.lease); at < p.end; at += upTo(2 * x.lease) {
			to := min(at+upTo(2*x.lease), p.end)
			ways := []time.Duration{x.lease / 50, x.lease / 5, x.lease / 2}
			n.net = append(n.net, episode{
				span: span{at, to}, what: []trouble{cut, cut, cut, mute, deaf, deaf, slow, slow, slow}[rng.IntN(9)],
				there: ways[rng.IntN(3)], back: ways[rng.IntN(3)],
			})
			at = to
		}
		for at := upTo(10 * x.lease); at < p.end; at += upTo(10 * x.lease) {
			to := min(at+upTo(2*x.lease), p.end)
			n.stops = append(n.stops, span{at, to})
			at = to
		}
		for at := time.Duration(0); at < p.end; at += x.lease + upTo(8*x.lease) {
			n.rates = append(n.rates, rate{at, []float64{1, 1 - x.drift(), 1 + x.drift(), 1 + x.drift()*(2*rng.Float64()-1)}[rng.IntN(4)]})
		}
		p.nodes[i] = n
	}
	return p
}

// networkOnly is the plan without what a process can't be made to suffer from outside.
func (p *plan) networkOnly() *plan {
	for _, n := range p.nodes {
		n.stops, n.rates = nil, nil
	}
	return p
}

// goesOn returns when a process that wants to do something at t does it.
func (n *nodePlan) goesOn(t time.Duration) time.Duration {
	for _, s := range n.stops {
		if s.from <= t && t < s.to {
			return s.to
		}
	}
	return t
}

// at returns the episode of t.
func (n *nodePlan) at(t time.Duration) episode {
	for _, e := range n.net {
		if e.from <= t && t < e.to {
			return e
		}
	}
	return episode{}
}

// fate says what becomes of an operation that begins at t. What a stopped process does and hears waits until it goes on.
func (n *nodePlan) fate(op faulty.Op, t time.Duration) faulty.Fault {
	rng := rand.New(rand.NewPCG(n.seed, uint64(op.Seq)))
	way := func(most time.Duration) time.Duration {
		return time.Millisecond + time.Duration(rng.Int64N(int64(most)+1))
	}
	sent := n.goesOn(t)
	e := n.at(sent)
	there, back := way(e.there), way(e.back)
	if op.Kind == faulty.Wait || op.Kind == faulty.Push {
		if e.what != "" && e.what != slow {
			return faulty.Fault{Delay: sent - t, Drop: true, Restored: e.over}
		}
		return faulty.Fault{Delay: n.goesOn(sent+back) - t}
	}
	f := faulty.Fault{Delay: sent + there - t, Silent: rng.IntN(2) == 0}
	switch {
	case e.what == cut, e.what == mute:
		return faulty.Fault{Delay: sent - t, Drop: true}
	case e.what == slow && rng.IntN(5) == 0:
		f.ApplyLate = way(e.there) // its sender has given up by then
		return f
	}
	answered := sent + there + back
	if e := n.at(answered); e.what == cut || e.what == deaf {
		f.LoseReply, f.Silent = true, true
		return f
	}
	f.ReplyDelay = n.goesOn(answered) - (sent + there)
	return f
}
