package file

import (
	"errors"
	"fmt"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// closeWait is how long Close lets the store wait for other processes.
const closeWait = 5 * time.Second

// Close implements [store.Store]. Writes that are still queued are not done and return
// [store.ErrClosed]. Running writes are finished first, however long the disk takes. Another
// process may keep the file lock for longer than 5 s, because it is stopped as a rule. Then Close
// returns an error that names it. The rest is released when that process resumes or ends.
//
// A name that this process holds by [Store.PutOwn] isn't free for others at once: they wait for its
// TTL, or for the end of the process.
func (s *Store) Close() error {
	s.mu.Lock()
	first := !s.shut
	s.shut = true
	s.finish()
	s.mu.Unlock()
	if first {
		go s.release()
	}
	if !s.waitForEnd() {
		return fmt.Errorf("%s: closed, but another process holds its lock%s: what is left is released when that one continues or ends",
			s.path, s.main.holder())
	}
	if first {
		return s.endErr
	}
	return nil
}

// end ends the store for a reason that only opening it again mends, and returns the error of all
// calls from then on.
func (s *Store) end(fault error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed() {
		s.fault = fmt.Errorf("%w: %w", store.ErrClosed, fault)
	}
	s.finish()
	return s.reason()
}

// finish lets no more calls in. s.mu is held, as for the three below.
func (s *Store) finish() {
	if s.closed() {
		return
	}
	close(s.closing)
	for _, l := range []*lane{&s.terms, &s.takings} {
		l.failAll(s.refusal)
	}
}

func (s *Store) closed() bool {
	select {
	case <-s.closing:
		return true
	default:
		return false
	}
}

func (s *Store) reason() error {
	if s.fault != nil {
		return s.fault
	}
	return store.ErrClosed
}

// refusal is the error of a write that came too late. Where the files are gone, so is the record
// that was to be replaced: its holder need not try again until its validity ends.
func (s *Store) refusal(r *request) error {
	err := s.reason()
	if s.fault != nil && r.version != "" {
		err = errors.Join(driver.NotFound(r.key), err)
	}
	return err
}

// refused is refusal for callers without the lock.
func (s *Store) refused(r *request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.refusal(r)
}

// why is reason for callers without the lock.
func (s *Store) why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reason()
}

// start runs f in a goroutine that Close waits for. It reports false, and doesn't, when the store
// is closed.
func (s *Store) start(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed() {
		return false
	}
	s.running.Go(f)
	return true
}

// waitForEnd returns true when all is released, and false when another process has been waited for,
// during the call, for closeWait.
func (s *Store) waitForEnd() bool {
	for begun := s.clock.Now(); ; {
		left := closeWait
		if since := s.waitsSince(); since != 0 {
			left = max(since, begun).Add(closeWait).Sub(s.clock.Now())
		}
		if left <= 0 {
			return false
		}
		timer := clock.NewTimer(s.clock, left)
		select {
		case <-s.ended:
			timer.Stop()
			return true
		case <-timer.C:
		}
	}
}

// waitsSince returns the instant since when something of the store waits for other processes, 0 if
// nothing does.
func (s *Store) waitsSince() (first clock.Instant) {
	for _, since := range []clock.Instant{
		clock.Instant(s.terms.since.Load()), clock.Instant(s.takings.since.Load()), clock.Instant(s.awaited.Load()),
	} {
		if since != 0 && (first == 0 || since < first) {
			first = since
		}
	}
	return first
}

// delayed adds to the error of a write that didn't come to an end what other process is in the way,
// if one is.
func (s *Store) delayed(cause error) error {
	since := s.waitsSince()
	waited := s.clock.Now().Sub(since)
	if since == 0 || waited < longWait {
		return cause
	}
	return fmt.Errorf("%s: waited %v for its lock, which another process holds%s: let it continue, or end it: %w",
		s.path, waited.Round(time.Millisecond), s.main.holder(), cause)
}

// longWait is from when on a wait for other processes is worth a word.
const longWait = 500 * time.Millisecond

// release waits for the goroutines and frees what the store holds. The file lock keeps SQLite's
// closing checkpoint of one process and the opening of another apart.
func (s *Store) release() {
	defer close(s.ended)
	s.running.Wait()
	s.awaited.Store(int64(s.clock.Now()))
	errs := []error{s.main.lock()}
	s.awaited.Store(0)
	errs = append(errs, s.readers.close())
	if s.writer != nil {
		errs = append(errs, s.writer.close())
	}
	errs = append(errs, s.main.unlock(), s.main.close(), s.terms.gate.close(), s.takings.gate.close())
	if s.life != nil {
		s.life.release()
	}
	s.endErr = errors.Join(errs...)
}
