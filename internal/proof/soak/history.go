package main

import (
	"slices"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/soak/resources"
)

// term is one acquisition by one process.
type term struct {
	proc   int
	name   string
	token  fence.Token
	holder string
	since  clock.Instant // when the attempt began
	at     clock.Instant // when it was held
	wanted clock.Instant // since when somebody had wanted it, without a break
}

// section is one stay of a process in the critical section of a name.
type section struct {
	proc     int
	name     string
	token    fence.Token
	from, to clock.Instant // to is clock.NoDeadline while it is inside
}

// window is a stretch of time in which a process was stopped, from before SIGSTOP was sent until
// after SIGCONT.
type window struct {
	proc     int
	from, to clock.Instant // to is clock.NoDeadline while it lasts
}

// ack is a guarded write that a process knows to be done.
type ack struct {
	name   string
	holder string
	seq    int
}

// eviction is a hold that the operator broke, and when the store had confirmed that.
type eviction struct {
	name  string
	token fence.Token
	at    clock.Instant
}

// outsider is the process number of the soak itself, which takes names as another kind.
const outsider = -1

// failure is something that should have worked, by what was said.
type failure struct {
	text string
	at   clock.Instant
}

// meddling is a record that an outsider deleted or changed, between from and at.
type meddling struct {
	name     string
	from, at clock.Instant
}

// stall is a request to the store that took long.
type stall struct {
	proc     int
	what     string
	from, to clock.Instant
}

// history is what has happened. It is safe for concurrent use.
type history struct {
	mu        sync.Mutex
	terms     []term
	sections  []section
	inside    map[int]int   // by process: the section it is in
	judged    clock.Instant // when judge was called last
	windows   []window
	stopped   map[int]int // by process: the window it is in
	acks      []ack
	breaks    []eviction
	meddlings []meddling
	outages   []window // of the store, while another server took over
	refusals  int
	stalls    []stall
	givenUp   int
	losses    map[string]int
	resources map[string]*tally // by kind
	failures  []failure
	holder    map[string]int // by name: the process that holds it, as far as is known
	freed     map[string]clock.Instant
	wanting   map[string]map[int]bool  // by name: the processes that want it and don't have it
	wanted    map[string]clock.Instant // by name: since when there has been one
}

func newHistory() *history {
	return &history{
		inside: map[int]int{}, stopped: map[int]int{}, losses: map[string]int{}, resources: map[string]*tally{},
		holder: map[string]int{}, freed: map[string]clock.Instant{}, wanting: map[string]map[int]bool{}, wanted: map[string]clock.Instant{},
	}
}

// take adds what process proc has told.
func (h *history) take(proc int, e event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch e.Kind {
	case wanted:
		h.wants(proc, e.Name, e.At)
	case gone:
		delete(h.wanting[e.Name], proc)
	case acquired:
		h.terms = append(h.terms, term{proc, e.Name, e.Token, e.Holder, e.Since, e.At, h.wanted[e.Name]})
		h.holder[e.Name] = proc
		delete(h.wanting[e.Name], proc)
	case released:
		h.release(proc, e)
	case entered:
		h.inside[proc] = len(h.sections)
		h.sections = append(h.sections, section{proc, e.Name, e.Token, e.At, clock.NoDeadline})
	case left:
		h.leave(proc, e.At)
	case accepted:
		h.acks = append(h.acks, ack{e.Name, e.Holder, e.Seq})
	case refused:
		h.refusals++
	case wrote, turned, erred:
		h.took(proc, e)
	case slow:
		h.stalls = append(h.stalls, stall{proc, e.Text, e.Since, e.At})
	case gaveUp:
		h.givenUp++
	default:
		h.failures = append(h.failures, failure{e.Text, e.At})
	}
}

// wants says that a process wants a name from then on. The lock is held.
func (h *history) wants(proc int, name string, at clock.Instant) {
	if h.wanting[name] == nil {
		h.wanting[name] = map[int]bool{}
	}
	if len(h.wanting[name]) == 0 {
		h.wanted[name] = at
	}
	h.wanting[name][proc] = true
}

// release ends a term, of which the next holder may have told before. The lock is held.
func (h *history) release(proc int, e event) {
	if e.Text != "" {
		h.losses[e.Text]++
	}
	switch {
	case h.holder[e.Name] == proc:
		delete(h.holder, e.Name)
		h.freed[e.Name] = e.At
	case e.Text == "":
		h.freed[e.Name] = max(h.freed[e.Name], e.At)
	}
}

// leave ends the section that a process is in. The lock is held.
func (h *history) leave(proc int, at clock.Instant) {
	if i, ok := h.inside[proc]; ok {
		h.sections[i].to = at
		delete(h.inside, proc)
	}
}

// stop says that a process is about to be stopped.
func (h *history) stop(proc int, at clock.Instant) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopped[proc] = len(h.windows)
	h.windows = append(h.windows, window{proc, at, clock.NoDeadline})
}

// resume says that a process goes on.
func (h *history) resume(proc int, at clock.Instant) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i, ok := h.stopped[proc]; ok {
		h.windows[i].to = at
		delete(h.stopped, proc)
	}
}

// died says that a process has ended and all that it told was taken. It was still where it was just
// before it was killed; at is that instant.
func (h *history) died(proc int, at clock.Instant) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leave(proc, at)
	if i, ok := h.stopped[proc]; ok {
		h.windows[i].to = at
		delete(h.stopped, proc)
	}
	for _, procs := range h.wanting {
		delete(procs, proc)
	}
	for name, p := range h.holder {
		if p == proc {
			delete(h.holder, name)
			h.freed[name] = at
		}
	}
}

// broke says that the operator broke a hold.
func (h *history) broke(e eviction) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.breaks = append(h.breaks, e)
}

// outage says that the store doesn't serve from now on. It serves again when over is called.
func (h *history) outage(clk clock.Clock) (over func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := len(h.outages)
	h.outages = append(h.outages, window{outsider, clk.Now(), clock.NoDeadline})
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.outages[i].to = min(h.outages[i].to, clk.Now())
	}
}

// longestOutage is how long it took at most until the store served again. The lock is held.
func (h *history) longestOutage() (longest time.Duration) {
	for _, w := range h.outages {
		longest = max(longest, w.to.Sub(w.from))
	}
	return longest
}

// excused reports whether what failed at an instant did so for want of a store that serves, or for
// what was under way then. The lock is held.
func (h *history) excused(at clock.Instant) bool {
	return slices.ContainsFunc(h.outages, func(w window) bool { return w.from <= at && at <= w.to.Add(recovery) })
}

// down is excused for those who don't have the lock.
func (h *history) down(at clock.Instant) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.excused(at)
}

// recovery is how long clients may need until they have found the server that leads.
const recovery = 5 * time.Second

// meddledWith says that an outsider deleted or changed a record.
func (h *history) meddledWith(m meddling) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.meddlings = append(h.meddlings, m)
}

// add adds a section that is over.
func (h *history) add(s section) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sections = append(h.sections, s)
}

// holding returns the process that holds a name, as far as is known.
func (h *history) holding(name string) (proc int, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	proc, ok = h.holder[name]
	return proc, ok
}

// tally is what workers have told of their writes to resources of one kind.
type tally struct {
	acks    []ack // acknowledged writes
	refused int
	failed  int
	example string                 // one of the errors
	newest  map[string]fence.Token // by name: of the acknowledged writes
	own     map[writer]fence.Token // the same of each process
	// Writes that were acknowledged after one of a later term of the same process.
	late int
}

// writer is a process that writes under a name.
type writer struct {
	proc int
	name string
}

// tried reports whether a resource of each kind has acknowledged a write, and a late one, which can
// be told from its log, came to one of them at least.
func (h *history) tried(kinds map[string]string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	late := len(kinds) == 0
	for _, k := range resources.Kinds {
		if _, here := kinds[k.Name]; !here {
			continue
		}
		t := h.resources[k.Name]
		if t == nil || len(t.acks) == 0 {
			return false
		}
		late = late || t.refused > 0 || t.late > 0 && !k.Rewrites
	}
	return late
}

// took adds what a worker has told. The lock is held.
func (h *history) took(proc int, e event) {
	t := h.resources[e.Resource]
	if t == nil {
		t = &tally{newest: map[string]fence.Token{}, own: map[writer]fence.Token{}}
		h.resources[e.Resource] = t
	}
	switch e.Kind {
	case wrote:
		t.acks = append(t.acks, ack{e.Name, e.Holder, e.Seq})
		t.newest[e.Name] = max(t.newest[e.Name], e.Token)
		w := writer{proc, e.Name}
		if e.Token < t.own[w] {
			t.late++
		}
		t.own[w] = max(t.own[w], e.Token)
	case turned:
		t.refused++
	default:
		t.failed++
		t.example = e.Text
	}
}
