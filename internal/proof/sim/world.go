package sim

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/proof/sim/linear"
	"github.com/leasehold/leasehold/internal/protocol"
)

// never is an instant of true time that no run reaches.
const never = math.MaxInt64

// epoch is the time of day at which every run starts.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func duration(ns int64) time.Duration { return time.Duration(ns) }

// World is one run.
type World struct {
	cfg     Config
	timing  protocol.Timing
	rng     *rand.Rand
	now     int64 // true time, ns
	queue   queue
	server  *server
	nodes   []*node              // all there ever were
	live    []*node              // the processes that have not crashed
	byKey   map[string][]*client // their programs, by the name that they want
	keys    []string
	nonces  int
	calm    bool // the faults are over
	guards  map[string]*guard
	check   checker
	trace   io.Writer
	history *linear.History
	spans   *Picture
	Stats   Stats
}

// guard is what the lease of a name guards.
type guard struct {
	mark     fence.Mark
	accepted int
}

// Stats counts what a run did.
type Stats struct {
	Virtual                                    time.Duration
	Events, Terms, Losses, Releases, Handovers int
	Writes, Refused                            int // at the guarded resources
	Faults                                     map[string]int
}

// Add adds the figures of another run, but for the faults.
func (s *Stats) Add(o Stats) {
	s.Virtual += o.Virtual
	s.Events += o.Events
	s.Terms += o.Terms
	s.Losses += o.Losses
	s.Releases += o.Releases
	s.Handovers += o.Handovers
	s.Writes += o.Writes
	s.Refused += o.Refused
}

// Result is what came of a run.
type Result struct {
	Seed       uint64
	Stats      Stats
	Violations []Violation
	Picture    *Picture // if it was asked for
}

// Options asks for more than a verdict.
type Options struct {
	Trace   io.Writer // the story, event by event
	Picture bool
	History *linear.History // to take down what every process sees of the store
}

// Run carries out the run that cfg describes.
func Run(cfg Config, opts Options) Result {
	w := &World{
		cfg: cfg, timing: cfg.timing(), rng: rand.New(rand.NewPCG(cfg.Seed, 0x5eed)), server: newServer(),
		history: opts.History, guards: map[string]*guard{}, byKey: map[string][]*client{}, trace: opts.Trace,
	}
	w.Stats.Faults = map[string]int{}
	w.check = newChecker(w)
	if opts.Picture {
		w.spans = newPicture(cfg)
	}
	for i := range cfg.Names {
		key := string(rune('a' + i))
		w.keys = append(w.keys, key)
		w.guards[key] = &guard{}
	}
	for i := range cfg.Nodes {
		w.boot(i)
	}
	w.faults()
	w.loop(int64(cfg.Duration))
	w.calmDown()
	w.loop(int64(cfg.Duration) + int64(w.check.patience()))
	w.check.atTheEnd()
	for _, n := range w.live {
		for _, c := range n.clients {
			if c.run != nil {
				c.run.hangUp()
			}
		}
		for _, r := range n.settling {
			r.hangUp()
		}
	}
	w.Stats.Virtual = duration(w.now)
	if w.spans != nil {
		w.spans.finish(w)
	}
	return Result{Seed: cfg.Seed, Stats: w.Stats, Violations: w.check.found, Picture: w.spans}
}

// loop runs the events up to the true time end, or to the first violation: what follows one proves
// nothing.
func (w *World) loop(end int64) {
	for w.queue.Len() > 0 && len(w.check.found) == 0 {
		if w.queue.events[0].at > end {
			w.now = end
			return
		}
		if w.calm && w.Stats.Events%256 == 0 && w.check.done() {
			return
		}
		e := w.queue.next()
		w.now = e.at
		w.Stats.Events++
		e.run()
		w.check.afterEvent()
	}
}

func (w *World) after(d time.Duration, run func()) { w.queue.add(w.now+int64(max(d, 0)), run) }

func (w *World) at(t int64, run func()) {
	if t != never {
		w.queue.add(max(t, w.now), run)
	}
}

// chance reports true with probability p, and counts the fault that comes of it.
func (w *World) chance(p float64, fault string) bool {
	if w.calm || p == 0 || w.rng.Float64() >= p {
		return false
	}
	w.count(fault)
	return true
}

// count takes down that something went wrong.
func (w *World) count(fault string) { w.Stats.Faults[fault]++ }

// between returns a random duration.
func (w *World) between(low, high time.Duration) time.Duration {
	return low + time.Duration(w.rng.Int64N(int64(high-low)+1))
}

func (w *World) nonce() string {
	w.nonces++
	return fmt.Sprintf("w%d", w.nonces)
}

// boot starts a process at a place, with a clock of its own.
func (w *World) boot(slot int) *node {
	n := &node{w: w, id: len(w.nodes), slot: slot, memory: &drive.Memory{}, registry: registry{}, anchorTrue: w.now, ratePPM: w.rate()}
	n.owner = fmt.Sprintf("given/%d", n.id) // they share a given name; the rest is random
	n.anchor = clock.Instant(w.rng.Int64N(int64(1000 * time.Hour)))
	w.count("clock offset")
	if w.cfg.WildWall {
		w.count("wall clock offset")
		n.wall = w.between(-time.Hour, time.Hour)
	}
	if len(w.live) > 0 {
		w.count("shared given name")
	}
	w.add(n)
	w.logf("%s starts at place %d, clock rate %+.1f %%", n, slot, float64(n.ratePPM-1e6)/1e4)
	if w.cfg.Sessions && w.rng.IntN(2) == 0 {
		n.openSession(false)
	}
	for _, key := range w.keys {
		for range 1 + w.rng.IntN(2) {
			c := n.client(key, w.cfg.Sessions && w.rng.IntN(2) == 0)
			if w.cfg.Served && !c.wantsSession {
				c.served, c.number = w.rng.IntN(2) == 0, len(n.clients)
			}
			if w.cfg.Away && c.wantsSession {
				c.served = w.rng.IntN(3) > 0
			}
			w.after(w.between(0, w.cfg.TTL), c.rest)
		}
	}
	return n
}

// add makes a process part of the world.
func (w *World) add(n *node) {
	w.nodes = append(w.nodes, n)
	w.live = append(w.live, n)
	for _, c := range n.clients {
		w.byKey[c.key] = append(w.byKey[c.key], c)
	}
}

// remove takes one that crashed out of it.
func (w *World) remove(n *node) {
	n.dead = true
	w.live = slices.DeleteFunc(w.live, func(other *node) bool { return other == n })
	for key, clients := range w.byKey {
		w.byKey[key] = slices.DeleteFunc(clients, func(c *client) bool { return c.n == n })
	}
}

// rate draws a clock rate: most within the bound that the margin covers, up to 11 % off.
func (w *World) rate() int64 {
	const bound = 110_000
	switch {
	case w.calm:
		return 1e6
	case w.cfg.BadRates && w.rng.IntN(2) == 0:
		return w.rng.Int64N(3e6)
	case w.rng.IntN(3) == 0:
		return 1e6
	case w.rng.IntN(2) == 0: // the edges find more than the middle
		return 1e6 + bound*(2*w.rng.Int64N(2)-1)
	}
	return 1e6 - bound + w.rng.Int64N(2*bound)
}

func (w *World) logf(format string, args ...any) {
	if w.trace != nil {
		fmt.Fprintf(w.trace, "%10.3fs  %s\n", time.Duration(w.now).Seconds(), fmt.Sprintf(format, args...))
	}
}
