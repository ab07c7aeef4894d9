package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// unsentError is why a request was never sent.
type unsentError struct{ error }

func (e unsentError) Unwrap() error { return e.error }

// sessionPoll is how often to look whether there is a session. The client tells only its owner.
const sessionPoll = 5 * time.Millisecond

// session waits until the client has a session. So nothing is queued in the client while there is
// none, to be sent long after the caller has gone. Its errors are unsentErrors.
func (s *Store) session(ctx context.Context) error {
	for waited := false; ; waited = true {
		if s.watches.Life().Err() != nil {
			return unsentError{store.ErrClosed}
		}
		if ctx.Err() != nil && !waited {
			return unsentError{context.Cause(ctx)}
		}
		if s.conn.State() == zk.StateHasSession {
			return nil
		}
		// The end of ctx may come just after the pause.
		if clock.Sleep(ctx, s.clock, sessionPoll) != nil || ctx.Err() != nil {
			return unsentError{fmt.Errorf("no session with ZooKeeper (last tried %s): is it running, has it a quorum, and does the network let this machine reach it? %w",
				s.conn.Server(), context.Cause(ctx))}
		}
	}
}

// call has f ask the server, and waits for the answer until ctx is done. The client can't be told
// to stop: f then goes on by itself, and Close waits for it.
func call[T any](ctx context.Context, s *Store, f func(*zk.Conn) (T, error)) (T, error) {
	var none T
	if err := s.session(ctx); err != nil {
		return none, err
	}
	type answer struct {
		v   T
		err error
	}
	answers := make(chan answer, 1)
	if !s.begin(func() {
		v, err := f(s.conn)
		answers <- answer{v, err}
	}) {
		return none, unsentError{store.ErrClosed}
	}
	select {
	case a := <-answers:
		return a.v, a.err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}

// begin runs f in a goroutine that Close waits for. It reports false, and does nothing, after
// Close.
func (s *Store) begin(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.running.Go(f)
	return true
}

// refusals are the answers by which a server says that it did not and will not do it.
var refusals = []error{
	zk.ErrNoNode, zk.ErrNodeExists, zk.ErrBadVersion, zk.ErrNotEmpty, zk.ErrNoAuth, zk.ErrInvalidACL, zk.ErrBadArguments,
	zk.ErrNoChildrenForEphemerals,
}

// answered reports whether the server has answered, if only to refuse.
func answered(err error) bool {
	return err == nil || slices.ContainsFunc(refusals, func(r error) bool { return errors.Is(err, r) })
}

// failed returns the error of a request that was to do something with the znode at path, for
// people: what to do about it.
func (s *Store) failed(path string, err error) error {
	switch {
	case errors.Is(err, zk.ErrNoAuth):
		return fmt.Errorf("%s: ZooKeeper refuses this account: give it crwd (create, read, write, delete) on %s and what is below, or another account by AddAuth: %w", path, s.root, err)
	case errors.Is(err, zk.ErrInvalidACL):
		return fmt.Errorf("%s: ZooKeeper refuses the ACL of new znodes: the scheme \"auth\" needs an account, by AddAuth: %w", path, err)
	case errors.Is(err, zk.ErrNotEmpty):
		return fmt.Errorf("%s: the znode has children that aren't Leasehold's: remove them: %w", path, err)
	case errors.Is(err, zk.ErrNoChildrenForEphemerals):
		return fmt.Errorf("%s: a znode above it is ephemeral and can't have children: name another root: %w", path, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// outcome returns the error of a write to key that was not acknowledged.
func (s *Store) outcome(key string, err error) error {
	var unsent unsentError
	switch {
	case errors.As(err, &unsent):
		return unsent.error
	case errors.Is(err, zk.ErrNoServer), answered(err):
		// ErrNoServer: it was still queued in the client.
		return s.failed(s.node(key), err)
	}
	return driver.Unknown(key, s.failed(s.node(key), err))
}

// readError returns the error of a read of the znode at path.
func (s *Store) readError(path string, err error) error {
	var unsent unsentError
	if errors.As(err, &unsent) {
		return unsent.error
	}
	return s.failed(path, err)
}
