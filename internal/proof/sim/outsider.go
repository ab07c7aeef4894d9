package sim

import (
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
)

// WithOutsiders returns c with an outsider that deletes, edits and touches records, by no tool of
// Leasehold's. Sessions look at what they keep then. A name whose record was deleted has its next
// token from the clock, so that has to be roughly right.
func (c Config) WithOutsiders() Config {
	c.WildWall = false
	c.Chance.Outsider = 0.5 / c.TTL.Seconds()
	return c
}

// outsider does something to the record of a name.
func (w *World) outsider() {
	if w.server.down || !w.chance(w.cfg.Chance.Outsider, "outsider") {
		return
	}
	key := w.keys[w.rng.IntN(len(w.keys))]
	row, ok := w.server.rows[key]
	if !ok {
		return
	}
	rec := row.rec
	switch w.rng.IntN(3) {
	case 0:
		w.count("outsider: deletes a record")
		delete(w.server.rows, key)
		w.logf("an outsider deletes %q", key)
	case 1:
		w.count("outsider: frees a record")
		rec.Owner, rec.Session, rec.Intervention, rec.TTL, rec.Nonce = "", "", "", 0, "outsider"
		w.meddle(rec, row.writer)
		w.logf("an outsider frees %q", key)
	default:
		// No sign of life, and no end for what a session keeps; the renewal of another hold can't
		// tell it from a restored copy.
		if rec.Session == "" {
			return
		}
		w.count("outsider: touches a record")
		w.meddle(rec, row.writer)
		w.changed(key)
		return
	}
	w.changed(key)
	w.spans.fault(-1, w.now, w.now, key+" meddled with")
	w.check.forgot()
}

func (w *World) meddle(rec store.Record, writer int) {
	if _, err := w.server.put(rec, writer, w.now, false); err != nil {
		w.logf("an outsider fails: %v", err) // it has read what it writes
	}
}

// lookOn has a session look at the records of its leases now and then, as lease.Session does, from
// now on.
func (c *client) lookOn() {
	w, l := c.w(), c.lease
	if w.cfg.Chance.Outsider == 0 {
		return
	}
	w.after(w.cfg.TTL/4, func() {
		c.n.deliver(func() {
			if c.lease != l || !c.valid() {
				return
			}
			for _, l := range c.members() {
				l.look()
			}
			c.lookOn()
		})
	})
}

// look reads the record of a lease that a session keeps, and ends the lease if it doesn't name it
// any more.
func (l *lease) look() {
	c := l.c
	w, run := c.w(), c.run
	read := protocol.Action{Kind: protocol.Read, Key: c.key}
	answered := w.called(c.n, read)
	w.transmit(c.n, c.key, false, func() (store.Record, error) { return w.apply(run, read) }, func(rec store.Record, err error) {
		answered(rec, err)
		if err != nil || c.lease != l || c.shown != protocol.Held {
			return
		}
		if cause, why := protocol.Ousted(rec, l.kept); cause != protocol.NotLost {
			w.logf("%s looks at its record: %v", c, why)
			l.lost(cause)
		}
	})
}
