package admiral

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
)

// Status is a snapshot of a [State].
type Status struct {
	ReadOnly bool // this instance must not write
	// It is known which instance may write; false at the start and while the store does not answer.
	Initialized bool
	Reason      string // why it is read-only; "" when it is not

	Lease string // its name; "" with a checker that has none
	Pod   string // podIdentifier of this instance
	// Id of the holder as last seen; "" when nobody holds the lease or nothing was seen yet.
	Owner string
	Token fence.Token // of the holder's term, as last seen
	Since time.Time   // when that term began, by the holder's wall clock; for people
	// ExpiresIn is how long the term lasts unless it is renewed. For this instance it is its own
	// validity. For another holder it is the rest of its TTL as observed here. It is 0 when nobody
	// holds the lease or an operator does.
	ExpiresIn time.Duration
	Err       error  // the last failure of the store, until it has answered again
	Seq       uint64 // rises with every change
}

// ReadOnlyError is the reason why a write was refused. It matches [ErrReadOnly].
type ReadOnlyError struct {
	Reason string
	Owner  string // the holder that may write instead, if known
}

func (e *ReadOnlyError) Error() string {
	if e.Owner == "" {
		return fmt.Sprintf("%v: %s", ErrReadOnly, e.Reason)
	}
	return fmt.Sprintf("%v: %s (%s holds the lease)", ErrReadOnly, e.Reason, e.Owner)
}

// reasonOf is what ended a term, without saying twice that it did.
func reasonOf(err error) string {
	var readOnly *ReadOnlyError
	if errors.As(err, &readOnly) {
		return readOnly.Reason
	}
	return err.Error()
}

// Is reports whether target is [ErrReadOnly].
func (e *ReadOnlyError) Is(target error) bool { return target == ErrReadOnly }

// State says whether this instance may write. A [StateChecker] sets it, and other code reads it.
// All methods may be called from any goroutine.
type State struct {
	clk clock.Clock

	mu      sync.Mutex
	status  Status        // as last published
	expires clock.Instant // of the term of another holder, as last seen
	term    *term         // nil while passive
	changed chan struct{} // closed at the next change
	clock   storeClock    // of the store, if it tells
}

// storeClock is a store that tells how far its clock and this machine's are apart at least.
type storeClock interface{ ClockApart() (time.Duration, bool) }

// ClockApart returns how far this machine's wall clock and the store's are apart at least, and
// false where the store doesn't tell its own, or hasn't answered yet. No decision depends on it. It
// does no I/O.
func (s *State) ClockApart() (time.Duration, bool) {
	s.mu.Lock()
	c := s.clock
	s.mu.Unlock()
	if c == nil {
		return 0, false
	}
	return c.ClockApart()
}

// setClock has ClockApart ask st.
func (s *State) setClock(st any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clock, _ = st.(storeClock)
}

// NewState returns a state that is read-only and not initialised.
func NewState(clk clock.Clock) *State {
	if clk == nil {
		clk = clock.System()
	}
	return &State{
		clk: clk, changed: make(chan struct{}), expires: clock.Ended,
		status: Status{ReadOnly: true, Reason: "it is not known yet who may write"},
	}
}

// Status returns the state at this instant. It is read-only from the moment at which the validity
// of the lease has ended, whether or not that was noticed before. It does no I/O.
func (s *State) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now()
}

// now is Status with the lock held.
func (s *State) now() Status {
	st := s.status
	now := s.clk.Now()
	switch {
	case s.term == nil:
		if s.expires > now && s.expires != clock.NoDeadline {
			st.ExpiresIn = s.expires.Sub(now)
		}
	case s.term.check() != nil:
		st.ReadOnly, st.Reason = true, reasonOf(s.term.check())
	case s.term.lease != nil:
		st.ExpiresIn = s.term.left()
	}
	return st
}

// Changed blocks until the state has changed since the snapshot with that Seq, and returns the
// present one. It returns the cause of ctx when that is done first.
func (s *State) Changed(ctx context.Context, seq uint64) (Status, error) {
	for {
		s.mu.Lock()
		st, changed := s.now(), s.changed
		s.mu.Unlock()
		if st.Seq != seq {
			return st, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return st, context.Cause(ctx)
		}
	}
}

// Guard returns the term under which this instance may write now, or a *[ReadOnlyError]. Ask it
// before every write, and bind the write to the term with [Term.Bind]. It does no I/O and does not
// block.
func (s *State) Guard(ctx context.Context) (Term, error) {
	if ctx.Err() != nil {
		return Term{}, context.Cause(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.term == nil {
		return Term{}, &ReadOnlyError{Reason: s.status.Reason, Owner: s.status.Owner}
	}
	if err := s.term.check(); err != nil {
		return Term{}, &ReadOnlyError{Reason: reasonOf(err)}
	}
	return Term{s.term}, nil
}

// set publishes a change; f gets the status to change.
func (s *State) set(f func(*Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.publish(f)
}

// publish is set with the lock held. What changes nothing is no change.
func (s *State) publish(f func(*Status)) {
	before := s.status
	f(&s.status)
	if sameStatus(s.status, before) {
		return
	}
	s.status.Seq++
	close(s.changed)
	s.changed = make(chan struct{})
}

// sameStatus goes by what the errors say: each failed request makes a new one.
func sameStatus(a, b Status) bool {
	if (a.Err == nil) != (b.Err == nil) || a.Err != nil && a.Err.Error() != b.Err.Error() {
		return false
	}
	a.Err, b.Err = nil, nil
	return a == b
}

// promote begins a term on l, which may be nil: then the term is without a lease and ends with
// demote only.
func (s *State) promote(l *lease.Lease, early time.Duration, f func(*Status)) *term {
	t := newTerm(l, early, s.clk)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.term, s.expires = t, clock.Ended
	s.publish(func(st *Status) {
		f(st)
		st.ReadOnly, st.Initialized, st.Reason, st.Err = false, true, "", nil
	})
	return t
}

// demote ends the term, if there is one, and after that publishes why.
func (s *State) demote(reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.term != nil {
		s.term.finish(&ReadOnlyError{Reason: reason})
		s.term = nil
	}
	s.publish(func(st *Status) { st.ReadOnly, st.Reason = true, reason })
}
