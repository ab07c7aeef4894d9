package lease

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/rules"
	"github.com/leasehold/leasehold/store"
)

// Session keeps any number of leases alive with one heartbeat. They are valid while the session is, and end with it. It is
// safe for concurrent use.
type Session struct {
	hold *Lease // on the session's own record

	mu     sync.Mutex
	leases map[string]*Lease
	missed map[string]fence.Token // terms that an operator broke before their claims were known to have landed
	over   bool
}

// OpenSession starts a session: one write now, and one every TTL/3 while it is open. It blocks until the store has answered
// or ctx is done.
func (m *Manager) OpenSession(ctx context.Context) (*Session, error) {
	h, err := m.makeSession(ctx)
	for errors.Is(err, store.ErrConflict) { // the record was made too slowly to be of use, and is not made twice
		h, err = m.makeSession(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("open a session: %w", err)
	}
	s := &Session{leases: map[string]*Lease{}, missed: map[string]fence.Token{}}
	s.hold = m.newLease(h, nil)
	s.hold.onEnd = s.end
	if err := s.hold.keep(h, s.told); err != nil {
		return nil, fmt.Errorf("open a session: %w", err)
	}
	return s, nil
}

// makeSession writes the record of a new session. Its key comes from the kernel, as a nonce does: no clone of this process
// makes another one under it.
func (m *Manager) makeSession(ctx context.Context) (*rules.Hold, error) {
	h := rules.NewSession(SessionKey(m.owner), m.claim(nil), m.timing)
	return &h, m.pursue(ctx, &h, nil, nil)
}

// notice is what an operator tells a session: leases of it that were broken, by key, with their tokens.
type notice struct {
	Broken map[string]fence.Token `json:"broken"`
}

// Acquire is [Manager.Acquire] for a lease that the session keeps. It fails with the session's *[LostError] when the
// session ends meanwhile.
func (s *Session) Acquire(ctx context.Context, key string) (*Lease, error) {
	return s.hold.m.acquire(ctx, key, s, false, nil)
}

// TryAcquire is [Manager.TryAcquire] for a lease that the session keeps.
func (s *Session) TryAcquire(ctx context.Context, key string) (*Lease, error) {
	return s.hold.m.acquire(ctx, key, s, true, nil)
}

// Check returns nil while the session is valid at this instant, and a *[LostError] for ever after; see [Lease.Check].
func (s *Session) Check() error { return s.hold.Check() }

// ValidUntil returns the instant of the manager's clock at which the session ends unless it is renewed; see [Lease.ValidUntil].
func (s *Session) ValidUntil() clock.Instant { return s.hold.ValidUntil() }

// Context returns a context that is cancelled when the session ends.
func (s *Session) Context() context.Context { return s.hold.Context() }

// Events returns the events of the session itself; see [Lease.Events].
func (s *Session) Events() <-chan Event { return s.hold.Events() }

// Key returns the key of the session's record.
func (s *Session) Key() string { return s.hold.key }

// Close ends the session and all its leases, and frees them for others with a single write. What they guard has to be at
// rest before. The rest is as with [Lease.Release].
func (s *Session) Close(ctx context.Context) error {
	return s.hold.Release(ctx)
}

// end ends every lease of a session that is over.
func (s *Session) end() {
	s.mu.Lock()
	s.over = true
	leases := s.leases
	s.leases = nil
	s.mu.Unlock()
	cause, err := s.why()
	for _, l := range leases {
		l.end(cause, err)
	}
}

func (s *Session) why() (Cause, error) {
	s.hold.mu.Lock()
	defer s.hold.mu.Unlock()
	if s.hold.lost == nil {
		return Expired, nil
	}
	return s.hold.lost.Cause, s.hold.lost.Err
}

// enlist adds a lease that was just acquired. If the session ended meanwhile, the lease ends at once.
func (s *Session) enlist(l *Lease) error {
	s.mu.Lock()
	over, last, older := s.over, l, s.leases[l.key]
	if older != nil && older.token > l.token {
		last, older = older, l // which comes late
	}
	if !over {
		s.leases[l.key] = last
	}
	broken := s.missed[l.key] == l.token
	delete(s.missed, l.key)
	s.mu.Unlock()
	if older != nil && !over {
		older.end(Taken, nil) // an operator ended that term; the notice of it is on its way
	}
	switch {
	case over:
		cause, err := s.why()
		l.end(cause, err)
		return fmt.Errorf("acquire %s: the session is over: %w", l.key, l.Check())
	case broken:
		l.end(Broken, nil)
	}
	return nil
}

func (s *Session) forget(l *Lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leases[l.key] == l {
		delete(s.leases, l.key)
	}
}

// told ends the leases that a notice names.
func (s *Session) told(data []byte) {
	var n notice
	if err := json.Unmarshal(data, &n); err != nil {
		return // written by something newer; the records themselves still say what was broken
	}
	for key, token := range n.Broken {
		s.mu.Lock()
		l := s.leases[key]
		if l == nil || l.token < token {
			s.missed[key] = token
		}
		s.mu.Unlock()
		if l != nil && l.token == token {
			l.end(Broken, nil)
		}
	}
}
