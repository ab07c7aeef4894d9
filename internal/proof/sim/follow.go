package sim

import (
	"strconv"

	"github.com/leasehold/leasehold/internal/enginekit/watcher"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
)

// WithFollowers returns c with a store that pushes changes to programs which wait for a name and
// for the session that keeps it at once.
func (c Config) WithFollowers() Config {
	c.Follow, c.Sessions = true, true
	return c
}

// DrawFollowed returns the configuration of a seed in a world with followers, every other one with
// an outsider.
func DrawFollowed(seed uint64) Config {
	c := Draw(seed).WithFollowers()
	if seed%2 == 0 {
		c = c.WithOutsiders()
	}
	return c
}

// watched is what a process knows of a key that its programs follow, as the handle of an engine
// does. What the store pushes counts as a read, or is read: as [watcher.Latest] says.
type watched struct {
	key string
	watcher.Latest
	reads   uint64
	reading bool
	again   bool // and once more
}

// What becomes of a change that the store pushes.
const (
	pushSession = "pushed change: a session lives"
	pushCounts  = "pushed change: counts as a read"
	pushDoubt   = "pushed change: in doubt"
	pushLost    = "pushed change: lost"
)

// number is the place of a version in the order of all, 0 for that of no record.
func number(version string) uint64 {
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// follow waits for the keys of a Wait of a program that follows.
func (r *runner) follow() {
	if !r.following {
		return
	}
	r.joined = map[string]uint64{}
	for key, version := range r.follows() {
		e := r.n.watch(key)
		r.joined[key] = e.reads
		if !e.Known || e.At != number(version) || e.At < e.Shown {
			r.n.catchUp(e)
		}
	}
}

// follows yields the keys that the runner waits for, and their versions.
func (r *runner) follows() func(yield func(key, version string) bool) {
	return func(yield func(key, version string) bool) {
		if r.following && yield(r.asked.Key, r.asked.Version) && r.asked.Also != "" {
			yield(r.asked.Also, r.asked.AlsoVersion)
		}
	}
}

// awaits reports whether the runner waits for a change of key, and from which version.
func (r *runner) awaits(key string) (version string, ok bool) {
	for k, v := range r.follows() {
		if k == key {
			return v, true
		}
	}
	return "", false
}

// followers returns the runners on the node that wait for a change of key.
func (n *node) followers(key string) []*runner {
	var all []*runner
	for _, c := range n.clients {
		if c.active && c.run != nil && !c.run.done {
			if _, ok := c.run.awaits(key); ok {
				all = append(all, c.run)
			}
		}
	}
	return all
}

func (n *node) watch(key string) *watched {
	e := n.watchedKey(key)
	if e == nil {
		e = &watched{key: key}
		n.watched = append(n.watched, e)
	}
	return e
}

func (n *node) watchedKey(key string) *watched {
	for _, e := range n.watched {
		if e.key == key {
			return e
		}
	}
	return nil
}

// show takes down what the process is shown of a record.
func (n *node) show(key, version string) {
	if e := n.watchedKey(key); e != nil {
		e.Show(number(version), e.reads)
		n.w.check.showed(n, key, version)
	}
}

// push tells those who follow key that it has changed.
func (w *World) push(key string) {
	if !w.cfg.Follow {
		return
	}
	row, ok := w.server.rows[key]
	for _, n := range w.live {
		if e := n.watchedKey(key); e != nil {
			w.tell(n, e, row.rec, ok)
		}
	}
}

// tell has a change arrive: late, after another one that came later, or not at all.
func (w *World) tell(n *node, e *watched, rec store.Record, stored bool) {
	if n.deaf || w.chance(w.cfg.Chance.DropReply, pushLost) {
		w.silence(n, e)
		return
	}
	w.after(w.delay(), func() {
		if n.deaf || n.asleep && w.rng.IntN(2) == 0 {
			w.silence(n, e)
			return
		}
		n.deliver(func() { n.told(e, rec, stored) })
	})
}

// silence has the process notice after a while that the connection which would have told it
// something is dead.
func (w *World) silence(n *node, e *watched) {
	w.after(w.between(0, 2*w.cfg.TTL), func() { n.deliver(func() { n.doubt(e) }) })
}

// disconnect has all connections die on which the store would have told changes.
func (w *World) disconnect() {
	for _, n := range w.live {
		for _, e := range n.watched {
			w.silence(n, e)
		}
	}
}

// told: the store says that e is, or was, as rec has it, or that it is gone.
func (n *node) told(e *watched, rec store.Record, stored bool) {
	all, known := n.followers(e.key), true
	from := make([]uint64, 0, len(all))
	for _, r := range all {
		version, _ := r.awaits(e.key)
		from = append(from, number(version))
		known = known && version == rec.Version
	}
	switch at := number(rec.Version); {
	case stored && e.Counts(at, from...):
		n.w.count(pushCounts)
		n.w.check.pushed(n, e.key, rec.Version)
		for _, r := range all {
			if r.asked.Also == e.key {
				n.w.count(pushSession)
			}
		}
		e.At = at
		n.hear(all, e, rec, 0)
	case stored && len(all) > 0 && known:
	default:
		n.w.count(pushDoubt)
		n.doubt(e)
	}
}

// doubt has e read if somebody waits for it, or else when somebody does.
func (n *node) doubt(e *watched) {
	e.Known = false
	if e.reading || len(n.followers(e.key)) > 0 {
		n.catchUp(e)
	}
}

// catchUp reads e, once more if that is under way, until there is an answer.
func (n *node) catchUp(e *watched) {
	e.Known = false
	if e.reading {
		e.again = true
		return
	}
	w, over := n.w, false
	e.reading, e.again = true, false
	e.reads++
	begun := e.reads
	end := func(rec store.Record, err error) {
		if over {
			return
		}
		over, e.reading = true, false
		all := n.followers(e.key)
		if err == nil {
			e.again = e.again && len(all) > 0
			if !e.again {
				e.Read(number(rec.Version), begun)
				w.check.showed(n, e.key, rec.Version)
			}
			n.hear(all, e, rec, begun)
		}
		if (e.again || err != nil) && !e.reading && len(n.followers(e.key)) > 0 {
			n.catchUp(e)
		}
	}
	read := protocol.Action{Kind: protocol.Read, Key: e.key}
	answered := w.called(n, read)
	w.transmit(n, e.key, false, func() (store.Record, error) { return w.server.get(e.key, w.now, w.cfg.Age && !w.cfg.BadRates), nil },
		func(rec store.Record, err error) {
			answered(rec, err)
			end(rec, err)
		})
	w.after(pollEvery(w.cfg), func() { n.deliver(func() { end(store.Record{}, errTimeout) }) })
}

// hear hands a record over to those who wait for another version of it. One that was read is
// nothing to those who have begun to wait since: what they know may be newer.
func (n *node) hear(all []*runner, e *watched, rec store.Record, begun uint64) {
	for _, r := range all {
		version, ok := r.awaits(e.key)
		if !ok || r.done || version == rec.Version || begun != 0 && r.joined[e.key] >= begun {
			continue
		}
		r.op++
		r.following = false
		r.d.Hold.Tell(r.env(), r.asked, rec, nil)
		r.step()
	}
}
