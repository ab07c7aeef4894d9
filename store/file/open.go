package file

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/leasehold/leasehold/clock"
)

// Open opens the store in the file at path, and creates a missing one (mode 0600, less the umask).
// Any number of processes of one machine may have it open at once, and one process several times.
// Next to it are path-wal and path-shm, which belong to the data, path.lock, and the folder
// path.wake.
//
// Open doesn't wait for a process that writes, or was stopped while it wrote. It blocks while
// another process creates the file, until ctx is done. It fails when the file:
//
//   - is no store of Leasehold's, or one of a newer version;
//   - is damaged, or can't be written;
//   - has another name;
//   - is on a file system where locks don't hold between all that see the file: a network's, or
//     FUSE unless it is allowed.
//
// The error says which, and what to do.
func Open(ctx context.Context, path string, opts Options) (*Store, error) {
	named, err := filepath.Abs(path)
	if err == nil {
		path, err = locate(path, opts)
	}
	if opts.Group != nil {
		switch {
		case err == nil:
			err = opts.Group.admits(named, path)
		case errors.Is(err, fs.ErrNotExist):
			err = opts.Group.missing(named)
		}
	}
	if err != nil {
		return nil, err
	}
	vouch, err := checkFS(filepath.Dir(path), opts.AllowFUSE)
	if err == nil {
		err = checkNames(path)
	}
	if err != nil {
		return nil, err
	}
	main, err := openLock(path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("%s: its lock file can't be opened: %w", path, denied(path+".lock", err))
	}
	writer, err := enter(ctx, path, main)
	if err != nil {
		return nil, err
	}
	s := newStore(path, main, writer)
	s.shared = opts.Group != nil
	err = s.use(ctx, true, func(c *conn) error { return inspect(path, c) })
	if err == nil {
		s.place, err = placeOf(path)
	}
	if err == nil && vouch {
		s.family, s.life = bear(main)
	}
	s.begin()
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// enter opens the database for writing, or makes it, under the file lock. While another process
// keeps that, a database that is ready is entered without a connection: the first write makes it.
// After an error it has closed main.
func enter(ctx context.Context, path string, main *lockFile) (writer *conn, err error) {
	err = main.lockSoon(ctx)
	if errors.Is(err, errHeld) {
		if isReady(path) {
			return nil, nil //nolint:nilnil // as said above
		}
		if err = main.lockWithin(ctx); err != nil && ctx.Err() != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: this file system has no file locks: put the file on a local disk: %w", path, err), main.close())
	}
	writer, err = openLocked(path, main)
	if err = errors.Join(err, main.unlock()); err != nil {
		if writer != nil {
			err = errors.Join(err, writer.close())
		}
		return nil, errors.Join(err, main.close())
	}
	return writer, nil
}

// lockPatience is how long Open waits for a process that writes before it enters without the lock.
// Transactions are far shorter.
const lockPatience = 200 * time.Millisecond

// lockSoon takes the lock, or returns errHeld when that takes too long.
func (l *lockFile) lockSoon(ctx context.Context) error {
	clk := clock.System()
	for until := clk.Now().Add(lockPatience); ; {
		err := l.try()
		if !errors.Is(err, errHeld) || clk.Now() >= until || !sleepUntil(clk, time.Millisecond, ctx.Done()) {
			return err
		}
	}
}

// isReady reports whether there is a database at path that can be used as it is. Reading waits for
// no writer.
func isReady(path string) bool {
	c, err := dialReader(path)
	if err != nil {
		return false
	}
	defer func() { _ = c.close() }()
	version, err := c.number("user_version")
	if err != nil || version != schemaVersion || recognise(path, c) != nil {
		return false
	}
	_, err = c.prepare(selectRow)
	return err == nil
}

// openLocked opens the database, or makes it, while main is held.
func openLocked(path string, main *lockFile) (*conn, error) {
	if err := main.probe(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	// Never a second description of a database that is open: closing it would take SQLite's locks
	// from this process.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = f.Close()
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("%s: it can't be made: %w", path, denied(path, err))
	}
	w, err := dialWriter(path)
	if err != nil {
		return nil, explain(path, err)
	}
	return w, establish(path, w)
}

func newStore(path string, main *lockFile, writer *conn) *Store {
	s := &Store{
		path: path, wakeDir: path + wakeSuffix, id: rand.Text()[:16], clock: clock.System(), space: clockSpace(),
		closing: make(chan struct{}), ended: make(chan struct{}), main: main, writer: writer,
	}
	s.readers = newPool(path, s.closing, s.why)
	s.waiters = newWaiters(s)
	s.deaths = &deaths{store: s, byName: map[string]*death{}}
	s.terms.open(s.wakeDir, "terms")
	s.takings.open(s.wakeDir, "takings")
	return s
}

// begin starts the store's goroutines.
func (s *Store) begin() {
	s.running.Go(func() { s.serve(&s.terms) })
	s.running.Go(func() { s.serve(&s.takings) })
	s.running.Go(s.waiters.watch)
}
