package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
)

// Violation is a broken invariant.
type Violation struct {
	At        time.Duration // true time
	Invariant string
	What      string
}

func (v Violation) String() string {
	return fmt.Sprintf("at %.3f s: %s: %s", v.At.Seconds(), v.Invariant, v.What)
}

// The invariants.
const (
	OneHolder   = "no two holders are valid at one instant"
	Order       = "tokens rise with every term"
	GuardOrder  = "tokens accepted at the guard never fall"
	GuardAgrees = "the guard accepts a valid holder"
	ExactTerm   = "a release frees no other term"
	FencedEnds  = "a session that was closed is never renewed"
	FenceDead   = "only a session that is over is closed by another"
	Announced   = "a hold is valid when it is announced"
	NoRevival   = "a hold that has ended stays ended"
	InTime      = "a loss is signalled by its deadline"
	ToldOnce    = "the end of each term is told once"
	NotSpurious = "a hold is not given up while it is one's own"
	BreakWorks  = "a broken hold ends within its TTL"
	NothingOld  = "no push brings an older record than its process was shown"
	Served      = "when faults stop, a free name is taken and every waiter is served"
)

// Invariants lists them.
var Invariants = []string{
	OneHolder, Order, GuardOrder, GuardAgrees, ExactTerm, FencedEnds, FenceDead, Announced, NoRevival, InTime, ToldOnce,
	NotSpurious, BreakWorks, NothingOld, Served,
}

// checker holds a run against the invariants. It knows the true time and the whole world, as no
// process does.
type checker struct {
	w        *World
	found    []Violation
	tokens   map[string]fence.Token // the highest that was ever stored for a name
	latest   map[string]fence.Token // the highest that the guard accepted
	closed   map[string]bool        // sessions
	forgotAt fence.Token            // the time at which the store last forgot, as a token
	excused  int64                  // until when a store that forgot excuses two holders
	broken   map[string]int64       // by name and token: until when a broken term may be valid
	// Names that somebody waits for, and since when nobody holds them.
	vacant map[string]int64
	served map[*client]bool // in the calm
	shown  map[shown]uint64 // the highest version
	calmAt int64
}

func newChecker(w *World) checker {
	return checker{
		w: w, tokens: map[string]fence.Token{}, latest: map[string]fence.Token{}, closed: map[string]bool{},
		broken: map[string]int64{}, vacant: map[string]int64{}, served: map[*client]bool{}, shown: map[shown]uint64{},
	}
}

func (k *checker) violated(invariant, format string, args ...any) {
	v := Violation{At: duration(k.w.now), Invariant: invariant, What: fmt.Sprintf(format, args...)}
	k.found = append(k.found, v)
	k.w.logf("VIOLATION: %s: %s", v.Invariant, v.What)
}

// ratesHold reports whether what is promised for clocks within the bound can be asked for.
func (k *checker) ratesHold() bool { return !k.w.cfg.BadRates }

// holders returns the programs that may rely on holding key at this instant.
func (k *checker) holders(key string) []*client {
	var all []*client
	for _, c := range k.w.byKey[key] {
		if k.relies(c) {
			all = append(all, c)
		}
	}
	return all
}

// relies reports whether c may work: until it learns that its term is over, and by its own clock.
func (k *checker) relies(c *client) bool { return c.valid() }

func (k *checker) afterEvent() {
	w := k.w
	if k.ratesHold() && w.now >= k.excused {
		for _, key := range w.keys {
			k.oneHolder(key)
		}
	}
	for _, n := range w.live {
		// The timers of a machine that was suspended are late by a bounded time.
		if n.paused || w.now <= n.awake {
			continue
		}
		for _, c := range n.clients {
			if until := c.validUntil(); c.active && c.shown == protocol.Held && n.local() > until.Add(time.Millisecond) {
				k.violated(InTime, "%s was over at %v, and it is %v", c, until, n.local())
			}
		}
	}
	if w.calm && !k.confused() {
		k.vacancies()
	}
}

// cloned reports whether what c relies on is shared with a clone. Both are what one process was,
// until its validity ends. A lease that a session keeps has no heartbeat of its own: whichever
// clone keeps the session doesn't hear that the other one let the lease go. That is a limit of the
// protocol; the token holds there too.
func (k *checker) cloned(c *client) bool {
	return k.w.now < c.n.exempt || (c.session != nil && c.since <= c.n.clonedAt)
}

func (k *checker) oneHolder(key string) {
	all := k.holders(key)
	for i, a := range all {
		for _, b := range all[:i] {
			if k.cloned(a) || k.cloned(b) {
				continue
			}
			k.violated(OneHolder, "%s (token %d, %d) and %s (token %d, %d)", b, b.token(), b.shown, a, a.token(), a.shown)
		}
	}
}

// stored is told each write that the store did.
func (k *checker) stored(c *runner, before row, rec store.Record) {
	if c.ofSession || rec.Key != c.key {
		k.sessionStored(c, rec)
		return
	}
	switch {
	case rec.Owner == "" && before.rec.Owner != "" && !c.n.wrote(before) && k.relied(before.rec):
		k.violated(ExactTerm, "%s freed the term of %s, token %d", c, before.rec.Owner, before.rec.Token)
	case rec.Owner == "":
	case rec.Token == before.rec.Token && rec.Owner == before.rec.Owner && before.rec.Owner != "":
	default:
		if rec.Token <= k.tokens[rec.Key] && (before.rec.Version != "" || !k.forgotten(rec.Token)) {
			k.violated(Order, "%s begins a term under token %d, after token %d", c, rec.Token, k.tokens[rec.Key])
		}
	}
	k.tokens[rec.Key] = max(k.tokens[rec.Key], rec.Token)
}

// relied reports whether anyone may rely on the term in rec. Who gives up a claim on an abandoned
// record frees it.
func (k *checker) relied(rec store.Record) bool {
	return k.ratesHold() && k.w.now >= k.excused && slices.ContainsFunc(k.holders(rec.Key), func(c *client) bool {
		return c.token() == rec.Token && !k.cloned(c)
	})
}

func (k *checker) sessionStored(c *runner, rec store.Record) {
	switch {
	case rec.Owner != "" && k.closed[rec.Key]:
		k.violated(FencedEnds, "%s was renewed after it had been closed", rec.Key)
	case rec.Owner == "":
		k.closed[rec.Key] = true
		if c.key == rec.Key || k.w.now < c.n.exempt || !k.ratesHold() || k.w.now < k.excused {
			return
		}
		for _, n := range k.w.live {
			for _, s := range []*client{n.session, n.away} {
				if s != nil && s.key == rec.Key && s.active && s.valid() && k.w.now >= n.exempt {
					k.violated(FenceDead, "%s closed %s, which is valid", c, rec.Key)
				}
			}
		}
	}
}

// marked is told each mark that an operator put on a record.
func (k *checker) marked(rec store.Record) {
	if rec.Intervention == store.InterventionBroken {
		k.broken[rec.Key+rec.Token.String()] = k.w.now + int64(float64(rec.TTL)*1.2)
	}
}

// accepted is told each write that a guard accepted.
func (k *checker) accepted(key string, token fence.Token) {
	if token < k.latest[key] {
		k.violated(GuardOrder, "%s: token %d after token %d", key, token, k.latest[key])
	}
	k.latest[key] = token
}

// write is told each write of a valid holder that reaches the guard as good as at once.
func (k *checker) write(c *client) {
	w := k.w
	for term := c; term != nil; term = term.session {
		if until, ok := k.broken[term.key+term.token().String()]; ok && w.now > until && k.ratesHold() && w.now >= k.excused && !k.cloned(c) {
			k.violated(BreakWorks, "%s goes on though %s was broken, token %d", c, term.key, term.token())
		}
	}
	if !k.ratesHold() || w.now < k.excused || k.cloned(c) {
		return
	}
	if m := w.guards[c.key].mark; c.token() < m.Token && !k.forgotten(c.token()) {
		k.violated(GuardAgrees, "%s is valid under token %d, the guard has seen %d", c, c.token(), m.Token)
	}
}

func (k *checker) announced(c *client) {
	if !c.valid() {
		k.violated(Announced, "%s", c)
	}
	if c.told != c.term-1 {
		k.violated(ToldOnce, "%s begins term %d, and was told of %d ends", c, c.term, c.told)
	}
	if k.w.calm {
		k.served[c] = true
	}
}

// extended is told when the deadline of a hold moves.
func (k *checker) extended(c *client) {
	if c.n.local() >= c.deadline {
		k.violated(NoRevival, "%s was over for %v", c, c.n.local().Sub(c.deadline))
	}
}

// told is told each time that a program is told of the end of a term.
func (k *checker) told(c *client) {
	if c.told != c.term {
		k.violated(ToldOnce, "%s was told of %d ends of %d terms", c, c.told, c.term)
	}
}

func (k *checker) lost(c *client, cause protocol.Cause) {
	r, ok := k.w.server.rows[c.key]
	if k.w.now >= k.excused && cause == protocol.CauseTaken && ok && r.rec.Owner == c.n.owner && r.writer == c.n.id && k.w.now >= c.n.exempt && r.rec.Intervention == "" && r.rec.Token == c.token() {
		k.violated(NotSpurious, "%s", c)
	}
}

// forgotten reports whether a token is from before the store last forgot. A claim that was under
// way then, for a name that nobody had held, finds the name as it expected, and lands. Its holder
// is refused at the guard: a limit, but a safe one.
func (k *checker) forgotten(t fence.Token) bool {
	return t <= k.forgotAt && t+fence.Token((10*k.w.cfg.TTL).Milliseconds()) > k.forgotAt
}

// forgot: the store lost what it had; who still holds a name from before and who takes it now are
// both in the right.
func (k *checker) forgot() {
	k.excused = k.w.now + int64(k.w.cfg.TTL)*2
	k.forgotAt = fence.Token(epoch.Add(duration(k.w.now)).UnixMilli())
	k.closed, k.broken = map[string]bool{}, map[string]int64{}
}

// shown is what a process was shown of a key.
type shown struct {
	node int
	key  string
}

// showed is told what a process is shown of a key that it follows.
func (k *checker) showed(n *node, key, version string) {
	at := shown{n.id, key}
	k.shown[at] = max(k.shown[at], number(version))
}

// pushed is told each version that a process takes for what a read would show.
func (k *checker) pushed(n *node, key, version string) {
	if before := k.shown[shown{n.id, key}]; number(version) < before {
		k.violated(NothingOld, "%s takes version %s of %s for the record after version %d", n, version, key, before)
	}
	k.showed(n, key, version)
}

func (k *checker) calmDown() {
	k.calmAt = k.w.now
	for _, key := range k.w.keys {
		k.vacant[key] = k.w.now
	}
}

// slack is what a program needs beyond the TTL to take a name that has become free: a poll, a pause
// between retries, and the answers.
func (k *checker) slack() time.Duration {
	poll := pollEvery(k.w.cfg)
	if k.w.cfg.Sessions { // which a waiter polls no more often than that
		poll = max(poll, k.w.timing.Renew)
	}
	return duration(int64(float64(poll+4*k.w.timing.Attempt+k.w.cfg.TTL/20) / 0.89))
}

// vacancies checks that a name that somebody waits for is held again in bounded time.
func (k *checker) vacancies() {
	bound := int64(float64(k.w.cfg.TTL)/0.89) + int64(k.slack())
	for _, key := range k.w.keys {
		if k.waiting(key) == nil || len(k.holders(key)) > 0 {
			k.vacant[key] = k.w.now
		} else if vacant := k.w.now - max(k.vacant[key], k.calmAt+int64(3*k.w.cfg.TTL+slice)); vacant > bound {
			k.violated(Served, "%s has been free for %v while %s waits", key, duration(vacant), k.waiting(key))
		}
	}
}

// waiting returns a program that has waited for key for long enough to have been heard.
func (k *checker) waiting(key string) *client {
	for _, c := range k.w.byKey[key] {
		if !c.n.paused {
			if c.active && c.shown == protocol.Waiting && !c.run.d.Hold.Try && k.w.now-c.since > int64(k.slack()) {
				return c
			}
		}
	}
	return nil
}

// patience is how long the calm lasts: long enough for everyone to have a turn.
func (k *checker) patience() time.Duration {
	waiters := 0
	for _, n := range k.w.live {
		waiters += len(n.clients)
	}
	waiters += 4 * k.w.cfg.Nodes // of processes that start again only now
	return time.Duration(20+12*waiters) * k.w.cfg.TTL
}

// done reports whether everyone who still wanted a name in the calm has had it.
func (k *checker) done() bool {
	for _, n := range k.w.live {
		for _, c := range n.clients {
			if !c.isSession() && !k.served[c] {
				return false
			}
		}
	}
	return k.w.calm && k.w.now > k.calmAt+int64((lastCrash+3)*k.w.cfg.TTL)
}

// confused reports whether clones may share a session: see cloned. A lease that the one took under
// it before it lost the session is unknown to the one that keeps it, so the name stays taken for as
// long as that lives.
func (k *checker) confused() bool { return k.w.cfg.Sessions && k.w.Stats.Faults["clone"] > 0 }

func (k *checker) atTheEnd() {
	if len(k.found) > 0 || k.confused() {
		return
	}
	for _, n := range k.w.live {
		for _, c := range n.clients {
			if !c.isSession() && c.active && c.shown == protocol.Waiting && !c.run.d.Hold.Try && !k.served[c] {
				k.violated(Served, "%s has waited since %v", c, duration(c.since))
			}
		}
	}
}
