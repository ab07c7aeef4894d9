package elections

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

// world is one run: a store, three nodes, and an oracle that knows the true time and who leads.
type world struct {
	t     *testing.T
	plan  *plan
	began time.Time
	nodes []*node

	mu       sync.Mutex
	reigns   map[*reign]bool
	terms    int
	overlaps int           // terms that began while another went on
	longest  time.Duration // of them
	story    []string
	news     chan *node // who has begun to lead
}

// node is a process on a machine of its own.
type node struct {
	w    *world
	name string
	plan *nodePlan
	clk  *clocktest.Clock
	net  *faulty.Store

	mu   sync.Mutex
	dead bool // cut off for good
}

// reign is a term, for as long as its leader acts.
type reign struct {
	n      *node
	ctx    context.Context // what the leader goes by
	valid  func() bool     // whether it may act at this instant, were it to ask
	shared time.Time       // since when another one leads, too
}

// contender runs a candidate until the stop function is called, which waits for it.
type contender func(w *world, n *node) (stop func())

// outcome is what one run showed.
type outcome struct {
	terms, overlaps   int
	longest, failover time.Duration // failover is 0 when nobody took over: then wrong says why
	wrong             string
}

// run runs a plan in virtual time.
func run(t *testing.T, p *plan, x timing, c contender) (o outcome) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, plan: p, began: time.Now(), reigns: map[*reign]bool{}, news: make(chan *node, 1000)}
		db := memory.NewDB(memory.Options{Clock: clocktest.New(0)})
		var stops []func()
		for i, np := range p.nodes {
			n := &node{w: w, name: string(rune('a' + i)), plan: np, clk: clocktest.New(clock.Instant(i) * 1e12)}
			for i := range np.net {
				np.net[i].over = make(chan struct{})
			}
			n.net = faulty.Wrap(db.Open(), n.fate)
			w.nodes = append(w.nodes, n)
			stops = append(stops, c(w, n))
		}
		var driven sync.WaitGroup
		for _, n := range w.nodes {
			driven.Go(n.drive)
		}
		driven.Wait()
		time.Sleep(p.end + 4*x.lease - time.Since(w.began)) // all is well again
		o.failover, o.wrong = w.failover(x)
		var group sync.WaitGroup
		for _, stop := range stops {
			group.Go(stop)
		}
		group.Wait()
		synctest.Wait() // client-go doesn't wait for its callbacks
		for _, n := range w.nodes {
			if err := n.net.Close(); err != nil {
				t.Error(err)
			}
		}
		if *seeds == 1 {
			t.Logf("all that happened:\n%s", w.told())
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		o.terms, o.overlaps, o.longest = w.terms, w.overlaps, w.longest
	})
	return o
}

// drive has happen what doesn't happen to single operations.
func (n *node) drive() {
	type event struct {
		at time.Duration
		do func()
	}
	var all []event
	for _, e := range n.plan.net {
		all = append(all, event{e.from, func() { n.w.tell("%s is %s until %v", n.name, e.what, e.to) }}, event{e.to, func() { close(e.over) }})
	}
	for _, s := range n.plan.stops {
		all = append(all, event{s.from, func() { n.w.tell("%s is stopped until %v", n.name, s.to); n.clk.Pause() }}, event{s.to, n.clk.Resume})
	}
	for _, r := range n.plan.rates {
		all = append(all, event{r.at, func() { n.w.tell("the clock of %s runs at %.4f", n.name, r.to); n.clk.SetRate(r.to) }})
	}
	slices.SortStableFunc(all, func(a, b event) int { return int(a.at - b.at) })
	for _, e := range all {
		time.Sleep(time.Until(n.w.began.Add(e.at)))
		e.do()
	}
}

func (n *node) fate(op faulty.Op) faulty.Fault {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.dead {
		return faulty.Fault{Drop: true}
	}
	return n.plan.fate(op, time.Since(n.w.began))
}

// stopped reports whether the process is stopped: what it was told it learns later.
func (n *node) stopped() bool {
	now := time.Since(n.w.began)
	return n.plan.goesOn(now) > now
}

// wasStopped reports whether the process was stopped at any time in the last d.
func (n *node) wasStopped(d time.Duration) bool {
	now := time.Since(n.w.began)
	return slices.ContainsFunc(n.plan.stops, func(s span) bool { return s.from <= now && s.to >= now-d })
}

func (w *world) tell(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.story = append(w.story, fmt.Sprintf("%11v  %s", time.Since(w.began).Round(time.Millisecond), fmt.Sprintf(format, args...)))
}

// told returns what has happened last.
func (w *world) told() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := 40
	if *seeds == 1 {
		last = len(w.story)
	}
	return strings.Join(w.story[max(0, len(w.story)-last):], "\n")
}

// begins notes that a term begins, and that it overlaps with others that go on. A term that has ended never begins again, so two
// lead at one instant only if one does when the other begins.
func (w *world) begins(r *reign) (overlap string) {
	w.tell("%s leads", r.n.name)
	w.mu.Lock()
	defer w.mu.Unlock()
	for other := range w.reigns {
		switch {
		case other.valid():
			overlap = fmt.Sprintf("%s leads while %s may", r.n.name, other.n.name)
		case other.ctx.Err() == nil && !other.n.stopped():
			overlap = fmt.Sprintf("%s leads while %s was not told to stop", r.n.name, other.n.name)
		default:
			continue
		}
		other.shared, r.shared = time.Now(), time.Now()
	}
	if overlap != "" {
		w.overlaps++
	}
	w.terms++
	w.reigns[r] = true
	w.news <- r.n
	return overlap
}

func (w *world) ends(r *reign) {
	w.tell("%s leads no more: %v", r.n.name, context.Cause(r.ctx))
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.reigns, r)
	if !r.shared.IsZero() {
		w.longest = max(w.longest, time.Since(r.shared))
		for other := range w.reigns {
			other.shared = time.Time{}
		}
	}
}

// failover cuts the leader off for good, and returns how long it takes until another one leads, or what is wrong.
func (w *world) failover(x timing) (took time.Duration, wrong string) {
	w.mu.Lock()
	var leader *node
	for r := range w.reigns {
		leader = r.n
	}
	w.mu.Unlock()
	if leader == nil {
		return 0, "nobody leads though all is well:\n" + w.told()
	}
	time.Sleep(time.Duration(w.plan.seed%97) * x.lease / 97) // at any moment between two renewals
	for len(w.news) > 0 {
		<-w.news
	}
	w.tell("%s is cut off for good", leader.name)
	leader.mu.Lock()
	leader.dead = true
	leader.mu.Unlock()
	cutOff := time.Now()
	select {
	case next := <-w.news:
		if next == leader {
			return 0, leader.name + " leads though it is cut off:\n" + w.told()
		}
		return time.Since(cutOff), ""
	case <-time.After(10 * x.lease):
		return 0, "nobody has taken over:\n" + w.told()
	}
}
