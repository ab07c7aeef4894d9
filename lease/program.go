package lease

import (
	"context"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/names"
	"github.com/leasehold/leasehold/store"
)

// What primitives that are made of leases, such as those of package lock, need of a manager.

// Store returns the store that the manager keeps its leases in.
func (m *Manager) Store() store.Store { return m.run.Store }

// Clock returns the clock by which the manager measures.
func (m *Manager) Clock() clock.Clock { return m.clk }

// TTL returns how long a name of this manager stays taken after its holder's last sign of life.
func (m *Manager) TTL() time.Duration { return m.timing.TTL }

// Notice tells the manager of a name's record that was just read: an attempt at the name after that doesn't begin with the write
// that would be right if there were no record. It says nothing of a record that isn't stored.
func (m *Manager) Notice(rec store.Record) {
	if rec.Version == "" {
		return
	}
	m.memory.Note(rec, m.clk.Now())
}

// Waiting tells the program whom an acquisition waits for, as [Options.OnWait] says.
func (m *Manager) Waiting(holder *HeldError) {
	if m.opts.OnWait != nil {
		m.opts.OnWait(holder)
	}
}

// Retrying tells the program why an acquisition tries again, as [Options.OnRetry] says.
func (m *Manager) Retrying(name string, err error) {
	if m.opts.OnRetry != nil {
		m.opts.OnRetry(name, err)
	}
}

// Manager returns the manager that opened the session.
func (s *Session) Manager() *Manager { return s.hold.m }

// AcquireBehind is [Session.Acquire] for one who goes behind others. A name that has become free is left to them for as long as
// patience says, which is asked again whenever something changes; one that its holder has abandoned is freed first, so that they
// hear of it at once. What is handed over to this session's manager is taken without delay. patience must not block. kind is what the
// name is taken as: [store.KindElection], say, so that nobody takes it as a plain lease meanwhile.
func (s *Session) AcquireBehind(ctx context.Context, name string, kind store.Kind, patience func() time.Duration) (*Lease, error) {
	return s.hold.m.acquire(ctx, want{key: name, kind: kind, session: s, patience: patience})
}

// TryAs is [Manager.TryAcquire] of a name that is to be of another kind than a lease, such as [store.KindPool].
func (m *Manager) TryAs(ctx context.Context, name string, kind store.Kind) (*Lease, error) {
	return m.acquire(ctx, want{key: name, kind: kind, try: true})
}

// Background runs f in a goroutine that the manager's Close waits for. The context ends with the session, and with the
// manager. It reports false, and doesn't run f, when the manager is closed.
func (s *Session) Background(f func(ctx context.Context)) bool {
	m := s.hold.m
	return m.start(func() {
		ctx, cancel := m.joined(m.ctx, s)
		defer cancel(nil)
		f(ctx)
	})
}

// SessionKey returns a key, never used before, for the record of a session of that owner.
func SessionKey(owner string) string { return names.SessionKey(owner, drive.Nonce()) }

// OwnerOf returns the owner id of the manager that opened the session of that key, or "" if it is no session's key.
func OwnerOf(sessionKey string) string { return names.OwnerOf(sessionKey) }
