package lease

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/drive"
	"github.com/leasehold/leasehold/internal/keyspace"
	"github.com/leasehold/leasehold/store"
)

// Session keeps any number of leases alive with one heartbeat. The leases are valid while the
// session is, and end with it. A Session is safe for concurrent use.
//
// # Looks at the records of its leases
//
// An outsider may delete, edit or restore the record of such a lease: with kubectl or etcdctl, or
// as another program that shares the record. So a session looks at the records of its leases every
// TTL/4. It ends the term of a lease whose record doesn't name the term any more ([CauseTaken],
// with what the record says). The term ends TTL/3 later at the latest, as long as the store answers
// within TTL/12. If the store takes longer, that time comes on top.
//
// Where the store pushes changes, the session follows 8 of its leases that are older than TTL/20.
// It looks as soon as it hears of a change. A label, or a change of the record's data, ends
// nothing.
//
// A lease that keeps itself meets the change with its next renewal, as soon. Any other version of
// its record ends that lease, even a copy that was written back. Labels and annotations on a
// Kubernetes object don't end it. What looking costs:
//
//	leases     requests every TTL/4             at a TTL of 15 s
//	1          1 read                           0.27 reads a second
//	16         16 reads                         4.3 reads a second
//	100        1 List of what names begin with  0.27 Lists a second, of 25 KB
//	100,000    1 List                           0.27 Lists a second, of 25 MB: 1 to 2.4 s of a core and of the store
//
// Other programs may share the records ([driver.Toucher]: on Kubernetes, client-go). There the look
// at the first 16 leases is a write, which renews the record for those programs. Like a renewal,
// this write is sent again when it has had no answer for TTL/20. It extends the lease from before
// the first copy was sent.
//
// Each of the 8 leases that are followed has a goroutine, and costs what a Wait of the store costs.
// On etcd and Kubernetes a Wait is a watch. On PostgreSQL, Redis and NATS it is a place in the one
// connection that listens. Most Waits are free while nothing changes. On Consul the session follows
// no lease. There, a query that is given up keeps its connection for a minute. A client may have
// 200 connections.
//
// A List also reads names that are not the session's, and the session tells them apart by their
// names alone. So give the names of one session a prefix in common. No other lease costs a
// goroutine. For very many leases take a longer TTL: the number of requests falls in proportion.
//
// On DynamoDB a List is a Scan of the whole table, one read unit for each 4 KiB of it. That is 67
// units a look at 1,000 leases, 18 a second at a TTL of 15 s. What leasehold cost estimates doesn't
// contain the looks.
type Session struct {
	hold   *Lease // on the session's own record
	roster drive.Roster[*Lease]

	looking  sync.Once     // at the records of its leases
	carried  rider         // what its renewals carry
	enlisted chan struct{} // one, which may have to be touched and followed
}

// OpenSession starts a session: one write now, and one every TTL/3 while the session is open. It
// blocks until the store has answered or ctx is done.
func (m *Manager) OpenSession(ctx context.Context) (*Session, error) {
	d, tr, err := m.makeSession(ctx)
	// The record was made too slowly to count, and is not made twice.
	for errors.Is(err, store.ErrConflict) {
		d, tr, err = m.makeSession(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("open a session: %w", err)
	}
	s := &Session{}
	s.hold = m.newLease(d, nil, tr)
	s.hold.onEnd, s.hold.rider = s.end, &s.carried
	if err := s.hold.keep(d, s.told); err != nil {
		return nil, fmt.Errorf("open a session: %w", err)
	}
	return s, nil
}

// makeSession writes the record of a new session. Its key comes from the kernel, as a nonce does:
// no clone of this process makes another one under it.
func (m *Manager) makeSession(ctx context.Context) (*drive.Driver, *TermTrace, error) {
	key := keyspace.SessionKey(m.owner, drive.Nonce())
	ctx, tr := m.traceAcquire(ctx, Acquisition{Name: key, Session: true})
	claim := m.claim(nil)
	claim.Info = tr.info(claim.Info)
	d := drive.Open(key, claim, m.timing)
	before, err := m.pursue(ctx, &d, want{trace: tr})
	return &d, tr.outcome(&d, before, err), err
}

// Acquire is [Manager.Acquire] for a lease that the session keeps. It returns the session's
// *[LostError] if the session ends meanwhile. The lease has the session's TTL: [WithTTL] is an
// error.
func (s *Session) Acquire(ctx context.Context, name string, opts ...AcquireOption) (*Lease, error) {
	return s.hold.m.acquire(ctx, want{key: name, session: s}, opts)
}

// TryAcquire is [Manager.TryAcquire] for a lease that the session keeps. [WithTTL] is an error, as
// with [Session.Acquire].
func (s *Session) TryAcquire(ctx context.Context, name string, opts ...AcquireOption) (*Lease, error) {
	return s.hold.m.acquire(ctx, want{key: name, session: s, try: true}, opts)
}

// Run is [Manager.Run] for a lease that the session keeps. It acquires name as [Session.Acquire]
// does, calls f, waits for f to return, and releases the lease. The session stays open. The context
// of f is done when ctx is, or when the lease ends, with the session or by itself.
func (s *Session) Run(ctx context.Context, name string, f func(context.Context, *Lease) error, opts ...AcquireOption) error {
	l, err := s.Acquire(ctx, name, opts...)
	if err != nil {
		return err
	}
	return l.run(ctx, f)
}

// Check returns nil while the session is valid at this instant, and a *[LostError] at every call
// after its end; see [Lease.Check].
func (s *Session) Check() error { return s.hold.Check() }

// ValidUntil returns the instant of the manager's clock at which the session ends if it is not
// renewed; see [Lease.ValidUntil].
func (s *Session) ValidUntil() clock.Instant { return s.hold.ValidUntil() }

// Left returns the time for which the session, and so its leases, is still valid if no renewal
// succeeds. It returns 0 when the session has ended. Left does no I/O, takes well under a
// microsecond and allocates nothing.
func (s *Session) Left() time.Duration { return s.hold.Left() }

// Context returns a context that is cancelled when the session ends.
func (s *Session) Context() context.Context { return s.hold.Context() }

// Events returns the events of the session itself; see [Lease.Events].
func (s *Session) Events() <-chan Event { return s.hold.Events() }

// Key returns the key of the session's record.
func (s *Session) Key() string { return s.hold.key }

// Close ends the session and all its leases, and frees them for others with a single write. The
// work that they guard has to have stopped before. The rest is as with [Lease.Release].
func (s *Session) Close(ctx context.Context) error {
	return s.hold.Release(ctx)
}

// term is what is shown of the session's own record; s may be nil.
func (s *Session) term() *drive.Term {
	if s == nil {
		return nil
	}
	return &s.hold.term
}

// alive reports whether s, which may be nil, has not ended.
func (s *Session) alive() bool { return s != nil && s.Context().Err() == nil }

// end ends every lease of a session that is over.
func (s *Session) end() {
	ended := s.roster.Close()
	cause, err := s.why()
	for _, l := range ended {
		l.end(cause, err)
	}
}

func (s *Session) why() (Cause, error) {
	s.hold.mu.Lock()
	defer s.hold.mu.Unlock()
	if s.hold.lost == nil {
		return CauseExpired, nil
	}
	return s.hold.lost.Cause, s.hold.lost.Err
}

// enlist adds a lease that was just acquired. If the session ended meanwhile, the lease ends at
// once.
func (s *Session) enlist(l *Lease) error {
	e := s.roster.Enlist(l)
	if e.Another {
		e.Older.end(CauseTaken, nil)
	}
	switch {
	case e.Over:
		cause, err := s.why()
		l.end(cause, err)
		return fmt.Errorf("acquire %s: the session is over: %w", l.key, l.Check())
	case e.Broken:
		l.end(CauseBroken, nil)
	}
	s.watchOver()
	return nil
}

// told ends the leases that a notice names. Where it can't be read, any of them may have been
// broken: all end, with the session.
func (s *Session) told(data []byte) {
	broken, err := s.roster.Told(data)
	if err != nil {
		s.hold.end(CauseBroken, fmt.Errorf("read the notice on %s: %w: open another session", s.hold.key, err))
		return
	}
	for _, l := range broken {
		l.end(CauseBroken, nil)
	}
}
