package file

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Options of [Open]. The zero value is ready for use.
type Options struct {
	// Make the folder of the file, mode 0700, where it is missing; otherwise that is an error.
	CreateDir bool
	// Accept a FUSE file system; only where it is known to keep flock and fsync, for all its users.
	AllowFUSE bool

	// Group, if set, is who shares the file. Open then makes no store: [Create] does. It refuses
	// files whose group or mode would keep a member out, and a place where a user who is neither
	// root, nor this user, nor a member could put another file in the place of the store. So no
	// folder above the file may be writable for others, unless it is sticky, as /tmp is.
	Group *Group
}

// Store is a store in one file. It implements [store.Store], [store.Waiter] and [driver.Witness].
type Store struct {
	path    string
	wakeDir string
	id      string        // of this Open
	shared  bool          // by a group
	clock   clock.Clock   // clock.System
	count   atomic.Uint64 // of versions made

	place    *place       // that path led to at Open
	lookedAt atomic.Int64 // the instant at which a read last compared place
	family   *family      // of life
	life     *life        // this process's; nil where nothing proves one
	space    string       // see clockSpace

	mu      sync.Mutex    // guards the queues and what follows
	fault   error         // why the store ended before Close; nil if it didn't
	shut    bool          // Close was called
	closing chan struct{} // closed when no more calls are let in
	terms   lane          // renewals and releases: they keep a term
	takings lane          // all other writes

	turn    sync.Mutex // one lane at a time goes for the file lock; guards main and writer
	main    *lockFile
	awaited atomic.Int64 // the instant since when release waits for main; 0 when it doesn't
	writer  *conn        // nil after a fault, until the next batch

	readers *pool
	waiters *waiters
	deaths  *deaths
	running sync.WaitGroup // every goroutine of the store but the one that Close starts
	ended   chan struct{}  // closed when all is released
	endErr  error          // set before
}

var (
	_ store.Store    = (*Store)(nil)
	_ store.Waiter   = (*Store)(nil)
	_ driver.Witness = (*Store)(nil)
)

// locate returns the one name of the file by which its side files are found, and sees that there is
// a folder for it.
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
		return "", denied(path, err)
	case info.IsDir():
		return "", fmt.Errorf("%s: a folder: name a file in it", path)
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s: not a regular file (%s): name another one", path, info.Mode().Type())
	}
	return path, nil
}
