package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/drive"
)

// node is one process on a machine of its own.
type node struct {
	w      *World
	id     int // never used twice; a restart is another process
	slot   int // its place in the picture
	owner  string
	dead   bool
	paused bool
	asleep bool     // paused, and its machine with it: its timers stand still
	late   []func() // timers that came due while it slept
	deaf   bool     // partitioned: nothing arrives
	mute   bool     // partitioned: nothing leaves
	inbox  []func() // what came while it was paused
	slept  int64    // true time at which it last fell asleep
	awake  int64    // true time from which on its timers are right again
	exempt int64    // a clone and its original: until when both may rely on what one held

	shared   int   // nonces that were handed out when it was last cloned
	clonedAt int64 // true time of the latest cloning, of the clone and of the original

	anchorTrue int64
	anchor     clock.Instant
	ratePPM    int64
	wall       time.Duration // how far the time of day is off

	clients []*client
	session *client // open, or nil
	away    *client // a session at a server, for programs that have nothing else, or nil
	opened  int
	memory  *drive.Memory

	registry registry
	watched  []*watched // what its programs follow, or have followed

	settling []*runner // what is let go of in the background
}

// local returns what the node's clock shows.
func (n *node) local() clock.Instant {
	return n.anchor.Add(duration(scale(n.w.now-n.anchorTrue, n.ratePPM, million)))
}

// trueAt returns when the node's clock will show t, at its present rate.
func (n *node) trueAt(t clock.Instant) int64 {
	if n.ratePPM == 0 {
		return never
	}
	d := int64(t.Sub(n.anchor))
	if d > never/1000 { // for ever, as good as
		return never
	}
	at := n.anchorTrue + scale(d, million, n.ratePPM)
	for n.anchor.Add(duration(scale(at-n.anchorTrue, n.ratePPM, million))) < t {
		at++
	}
	return max(at, n.w.now)
}

const million = 1_000_000

// scale returns d·num/den, rounded down, without an overflow on the way.
func scale(d, num, den int64) int64 { return d/den*num + d%den*num/den }

// wrote reports whether the process wrote r, or was about to when it was cloned, so that its clone
// may have.
func (n *node) wrote(r row) bool {
	base, _, _ := strings.Cut(r.rec.Nonce, "+")
	number, err := strconv.Atoi(strings.TrimPrefix(base, "w"))
	return r.writer == n.id || (err == nil && r.rec.Owner == n.owner && number <= n.shared)
}

func (n *node) setRate(ppm int64) {
	n.anchor, n.anchorTrue = n.local(), n.w.now
	n.ratePPM = ppm
	for _, c := range n.clients {
		if c.run != nil {
			c.run.rearm()
		}
		n.w.spans.validity(c)
	}
	for _, r := range n.settling {
		r.rearm()
	}
}

func (n *node) wallClock() time.Time {
	return epoch.Add(duration(n.w.now) + n.wall)
}

// deliver runs f on the node: now, or when it goes on, or never.
func (n *node) deliver(f func()) {
	switch {
	case n.dead:
	case n.paused:
		n.inbox = append(n.inbox, f)
	default:
		f()
	}
}

// slice is how late a timer may be that was set before its machine was suspended: see
// [clock.System].
const slice = 5 * time.Second

// timer calls f on the node at true time t, if the machine doesn't sleep: timers stand still then,
// though the clock goes on.
func (n *node) timer(t int64, f func()) {
	set := n.w.now
	n.w.at(t, func() {
		switch {
		case n.asleep:
			n.late = append(n.late, f)
		case set <= n.slept && n.w.now < n.awake:
			n.w.after(n.w.between(0, duration(n.awake-n.w.now)), func() { n.deliver(f) })
		default:
			n.deliver(f)
		}
	})
}

// stop keeps the process from doing anything for d; or its whole machine, which then hears half of
// what it is sent.
func (n *node) stop(d time.Duration, machine bool) {
	what := map[bool]string{false: "paused", true: "suspended"}[machine]
	n.paused, n.asleep = true, machine
	if machine {
		n.slept = n.w.now
	}
	n.w.logf("%s is %s for %v", n, what, d)
	n.w.spans.fault(n.slot, n.w.now, n.w.now+int64(d), what)
	n.w.after(d, n.resume)
}

func (n *node) resume() {
	w := n.w
	w.logf("%s goes on", n)
	if n.asleep {
		n.awake = w.now + int64(slice)
	}
	inbox, late := n.inbox, n.late
	n.paused, n.asleep, n.inbox, n.late = false, false, nil, nil
	for _, f := range late {
		w.after(w.between(0, slice), func() { n.deliver(f) })
	}
	w.rng.Shuffle(len(inbox), func(i, j int) { inbox[i], inbox[j] = inbox[j], inbox[i] })
	for _, f := range inbox {
		n.deliver(f)
	}
}

func (n *node) String() string { return fmt.Sprintf("n%d", n.id) }

// client starts a program on the node that wants key.
func (n *node) client(key string, kept bool) *client {
	c := &client{n: n, key: key, wantsSession: kept}
	n.clients = append(n.clients, c)
	n.w.byKey[key] = append(n.w.byKey[key], c)
	return c
}
