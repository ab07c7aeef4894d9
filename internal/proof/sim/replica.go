package sim

import (
	"errors"
	"maps"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// WithFailovers returns c with a store whose replica is cut off now and then. Half of the times it
// takes the primary's place after that: what was written meanwhile, and shown to reads, is lost.
// Clones, operators and servers' clients are left out: what they do to the store needs no answer
// here.
func (c Config) WithFailovers() Config {
	c.Chance.Detach = 0.5 / c.TTL.Seconds()
	c.Chance.Clone, c.Chance.Break, c.Chance.Wipe, c.Chance.Restore, c.Served = 0, 0, 0, 0, false
	return c
}

// replica is what takes the place of the store that it was cut off from.
type replica struct {
	rows   map[string]row
	tokens map[string]fence.Token // as the checker knew them when it was cut off
	closed map[string]bool
}

// replication cuts the replica off, for a while.
func (w *World) replication() {
	s := w.server
	if s.replica != nil || !w.chance(w.cfg.Chance.Detach, "replica cut off") {
		return
	}
	s.replica = &replica{maps.Clone(s.rows), maps.Clone(w.check.tokens), maps.Clone(w.check.closed)}
	w.logf("the store's replica is cut off")
	dies := w.rng.IntN(2) == 0
	w.after(w.between(0, 2*w.cfg.TTL), func() {
		if s.replica != nil && dies && !w.calm {
			w.count("failover")
			w.logf("the store's primary dies, and the replica takes its place")
			s.restart()
			s.rows = s.replica.rows
			w.check.tokens, w.check.closed = s.replica.tokens, s.replica.closed
			w.changedAll()
		}
		s.replica = nil
	})
}

// withholds reports whether there is no answer to a request until the replica follows again: it was
// done by the primary alone, or the answer would show that.
func (s *server) withholds(n *node, key string, isWrite bool, err error) bool {
	switch {
	case s.replica == nil:
		return false
	case isWrite && err == nil:
		return true
	case err == nil || errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound):
		return s.inDoubt(n, key)
	}
	return false
}

// inDoubt reports whether what is stored is a write of n that the replica has not heard of.
func (s *server) inDoubt(n *node, key string) bool {
	r, ok := s.rows[key]
	return ok && r.writer == n.id && r.rec.Version != s.replica.rows[key].rec.Version
}
