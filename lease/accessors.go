package lease

import (
	"context"
	"maps"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

// What primitives that are made of leases, such as those of package lock, need of a manager.

// Store returns the store in which the manager keeps its leases.
func (m *Manager) Store() store.Store { return m.run.Store }

// Clock returns the clock by which the manager measures.
func (m *Manager) Clock() clock.Clock { return m.clk }

// TTL returns how long a name of this manager stays taken after its holder's last sign of life.
func (m *Manager) TTL() time.Duration { return m.timing.TTL }

// Notice is for packages that are made of leases. It tells the manager of a name's record that the
// caller has just read. The next attempt at the name then reads first: it doesn't assume that there
// is no record. Notice has no effect for a record that isn't stored.
func (m *Manager) Notice(rec store.Record) {
	if rec.Version == "" {
		return
	}
	m.memory.Note(rec, m.clk.Now())
}

// Options returns the options by which the manager works. The defaults are filled in. Sightings is
// nil where the store vouches for ages, so that nothing has to be kept.
func (m *Manager) Options() Options {
	o := m.opts
	o.TTL, o.Margin, o.Drift, o.Renew, o.Attempt = m.timing.TTL, m.timing.Margin, m.timing.Drift, m.timing.Renew, m.timing.Attempt
	o.Info, o.Sightings = maps.Clone(o.Info), m.book
	return o
}

// Manager returns the manager that opened the session.
func (s *Session) Manager() *Manager { return s.hold.m }

// Background is for packages that are made of leases. It runs f in a goroutine that the manager's
// Close waits for. The context ends with the session, and with the manager. If the manager is
// closed, Background returns false and doesn't run f.
func (s *Session) Background(f func(ctx context.Context)) bool {
	m := s.hold.m
	return m.start(func() {
		ctx, cancel := m.joined(m.ctx, s)
		defer cancel(nil)
		f(ctx)
	})
}
