package file

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// A flock excludes every other open file description, of this process too, and goes with its
// process. Waiting for it can't be interrupted. Whoever waited longest gets it, but for one who
// asks in the moment between the release and the waking of the first in line.
//
// lockFile is one open file description of a side file, which holds nothing but locks.
type lockFile struct {
	f *os.File
}

func openLock(path string) (*lockFile, error) {
	f, err := openShared(path)
	if err != nil {
		return nil, err
	}
	return &lockFile{f: f}, nil
}

// openShared opens a side file, and makes a missing one, which all users of a group's store can
// then use.
func openShared(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		share(f)
		return f, nil
	}
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
}

// lock waits for the lock, and signs it.
func (l *lockFile) lock() error { return l.signed(flock(l.f)) }

// try is lock without waiting: it returns errHeld.
func (l *lockFile) try() error { return l.signed(tryFlock(l.f)) }

func (l *lockFile) signed(err error) error {
	if err == nil {
		l.sign()
	}
	return err
}

func (l *lockFile) unlock() error {
	l.unsign()
	return funlock(l.f)
}

func (l *lockFile) close() error { return l.f.Close() }

// errHeld says that tryFlock met a lock.
var errHeld = errors.New("locked")

// lockWithin takes the lock, or closes the file and gives up when ctx is done. The goroutine that
// is stuck in the system call then ends, and with it the lock, when the call returns; no one can
// make it return earlier.
func (l *lockFile) lockWithin(ctx context.Context) error {
	switch err := l.try(); {
	case err == nil:
		return nil
	case !errors.Is(err, errHeld):
		return err
	}
	locked := make(chan error, 1)
	go func() { locked <- l.lock() }()
	select {
	case err := <-locked:
		return err
	case <-ctx.Done():
		holder := l.holder()
		go func() {
			_ = errors.Join(<-locked, l.close()) // nobody is left to hear of it
		}()
		return fmt.Errorf("waiting for the lock on %s, which another process holds%s: let it continue, or end it: %w", l.f.Name(), holder, context.Cause(ctx))
	}
}

// probe returns an error where the file system doesn't keep two holders of one lock apart. l is
// held.
func (l *lockFile) probe() error {
	second, err := openLock(l.f.Name())
	if err != nil {
		return err
	}
	defer func() { _ = second.close() }()
	switch err := tryFlock(second.f); {
	case err == nil:
		return errors.New("two holders got one file lock at once: this file system doesn't keep locks; put the file on a local disk")
	case errors.Is(err, errHeld):
		return nil
	default:
		return err
	}
}
