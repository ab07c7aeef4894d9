package file

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

// Options of [Open]. The zero value is ready for use.
type Options struct {
	CreateDir bool // make the folder of the file, mode 0700, where it is missing; otherwise that is an error
	AllowFUSE bool // accept a FUSE file system; only where one is known to keep flock and fsync, for all who use it
}

// Store is a store in one file. It implements [store.Store] and [store.Waiter].
type Store struct {
	path   string
	opened os.FileInfo   // the file behind path at Open
	id     string        // of this Open
	boot   string        // see bootID
	clock  clock.Clock   // clock.System, whose origin is the boot
	count  atomic.Uint64 // of versions made

	mu      sync.Mutex // guards the queues and closed
	closed  bool
	closing chan struct{} // closed with closed
	terms   lane          // renewals and releases: they keep a term
	takings lane          // all other writes

	turn    sync.Mutex // one lane at a time goes for the file lock; guards main and writer
	main    *lockFile
	awaited atomic.Int64 // the instant since when main is waited for; 0 when it is not
	writer  *conn        // nil after a fault, until the next batch

	readers *pool
	waiters *waiters
	running sync.WaitGroup // every goroutine of the store but the one that Close starts
	ended   chan struct{}  // closed when all is released
	endErr  error          // set before
}

var (
	_ store.Store  = (*Store)(nil)
	_ store.Waiter = (*Store)(nil)
)

// Open opens the store in the file at path, which it makes (mode 0600, less the umask) where it is missing. Any number of
// processes of one machine may have it open at once, and one process several times. Next to it come path-wal and path-shm,
// which belong to the data, path.lock, and the folder path.wake.
//
// It blocks while another process holds the lock of the file, until ctx is done. It fails when the file is no store of
// Leasehold's or one of a newer version, is damaged, or can't be written, and on file systems where locks don't hold
// between all who see the file: those of networks, and FUSE unless it is allowed. The error says which, and what to do.
func Open(ctx context.Context, path string, opts Options) (*Store, error) {
	path, err := locate(path, opts)
	if err != nil {
		return nil, err
	}
	if err := checkFS(filepath.Dir(path), opts.AllowFUSE); err != nil {
		return nil, err
	}
	main, err := openLock(path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("%s: its lock file can't be opened: make folder and file writable for this user: %w", path, err)
	}
	if err := main.lockWithin(ctx); err != nil {
		if ctx.Err() == nil {
			err = errors.Join(fmt.Errorf("%s: this file system has no file locks: put the file on a local disk: %w", path, err), main.close())
		}
		return nil, err
	}
	writer, err := openLocked(path, main)
	opened, statErr := os.Stat(path)
	if err = errors.Join(err, statErr, main.unlock()); err != nil {
		if writer != nil {
			err = errors.Join(err, writer.close())
		}
		return nil, errors.Join(err, main.close())
	}
	s := newStore(path, opened, main, writer)
	if err := s.readers.use(ctx, func(c *conn) error { return inspect(path, c) }); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// locate returns the one name of the file by which its side files are found, and sees that there is a folder for it.
func locate(path string, opts Options) (string, error) {
	if path == "" {
		return "", errors.New(`path "": want the name of a file`)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	dir := filepath.Dir(path)
	if opts.CreateDir {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", fmt.Errorf("%s: its folder can't be made: %w", path, err)
		}
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("%s: its folder doesn't exist: make it, or set CreateDir: %w", path, err)
		}
		return "", fmt.Errorf("%s: its folder can't be read: %w", path, err)
	}
	path = filepath.Join(dir, filepath.Base(path))
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink != 0 {
		if path, err = filepath.EvalSymlinks(path); err != nil {
			return "", fmt.Errorf("the file's symbolic link leads nowhere: %w", err)
		}
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return path, nil
	case err != nil:
		return "", err
	case info.IsDir():
		return "", fmt.Errorf("%s: a folder: name a file in it", path)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s: not a regular file (%s): name another one", path, info.Mode().Type())
	}
	return path, nil
}

// openLocked opens the database, or makes it, while main is held.
func openLocked(path string, main *lockFile) (*conn, error) {
	if err := main.probe(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	// Never a second description of a database that is open: closing it would take SQLite's locks from this process.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err == nil {
		err = f.Close()
	}
	if err != nil && !errors.Is(err, os.ErrExist) {
		return nil, fmt.Errorf("%s: it can't be made: %w", path, err)
	}
	w, err := dialWriter(path)
	if err != nil {
		return nil, explain(path, err)
	}
	return w, establish(path, w)
}

func newStore(path string, opened os.FileInfo, main *lockFile, writer *conn) *Store {
	s := &Store{
		path: path, opened: opened, id: rand.Text()[:16], boot: bootID(), clock: clock.System(),
		closing: make(chan struct{}), ended: make(chan struct{}), main: main, writer: writer,
	}
	s.readers = newPool(path, s.closing)
	s.waiters = newWaiters(s)
	s.terms.open(path+wakeSuffix, "terms")
	s.takings.open(path+wakeSuffix, "takings")
	s.running.Go(func() { s.serve(&s.terms) })
	s.running.Go(func() { s.serve(&s.takings) })
	s.running.Go(s.waiters.watch)
	return s
}

// closeWait is how long Close lets the store wait for the file lock.
const closeWait = 5 * time.Second

// Close implements [store.Store]. Writes that are still queued are not done and return [store.ErrClosed]; those being done
// are finished first, however long the disk takes. When another process keeps the file lock for longer than 5 s, because it is
// stopped as a rule, Close returns an error; what is left is released when that process goes on or ends.
func (s *Store) Close() error {
	s.mu.Lock()
	first := !s.closed
	if first {
		s.closed = true
		close(s.closing)
		s.terms.failAll(store.ErrClosed)
		s.takings.failAll(store.ErrClosed)
	}
	s.mu.Unlock()
	if first {
		go s.release()
	}
	if !s.waitForEnd() {
		return fmt.Errorf("%s: closed, but another process holds its lock, stopped perhaps; it is released when that one goes on or ends", s.path)
	}
	if first {
		return s.endErr
	}
	return nil
}

// waitForEnd returns true when all is released, and false when the file lock has been waited for, during the call, for closeWait.
func (s *Store) waitForEnd() bool {
	for begun := s.clock.Now(); ; {
		left := closeWait
		if since := clock.Instant(s.awaited.Load()); since != 0 {
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

// lock waits for the file lock.
func (s *Store) lock() error {
	s.awaited.Store(int64(s.clock.Now()))
	defer s.awaited.Store(0)
	return s.main.lock()
}

// release waits for the goroutines and frees what the store holds. The file lock keeps SQLite's closing checkpoint of one
// process and the opening of another apart.
func (s *Store) release() {
	defer close(s.ended)
	s.running.Wait()
	errs := []error{s.lock()}
	errs = append(errs, s.readers.close())
	if s.writer != nil {
		errs = append(errs, s.writer.close())
	}
	errs = append(errs, s.main.unlock(), s.main.close(), s.terms.gate.close(), s.takings.gate.close())
	s.endErr = errors.Join(errs...)
}
