//go:build unix && !solaris && !aix

package file

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leasehold/leasehold/clock"
)

// shards bounds how many names a store has in the wake folder, however many keys it waits for.
const shards = 64

func shardOf(h uint64) int { return int(h % shards) }

// bell carries wake-ups between processes. A store that waits has a FIFO of its own in the wake
// folder, named fifo-<id>, and a hard link to it, named <id>, in the folder of each shard in which
// it waits for a key. After a commit, the writer sends the hashes of the keys that it changed to
// the FIFOs in the folders of their shards. Nothing polls, and a waiting process costs one
// descriptor. (Of inotify instances, the obvious way, a user has 128.)
//
// A FIFO that nobody reads is a dead process's: whoever meets it removes it. One that is full has
// news enough.
//
// The folder holds nothing that is needed for safety. It may be removed at any time; waiters make
// it anew.
type bell struct {
	dir     string
	id      string
	folder  folder[[]string] // the names in dir
	running *sync.WaitGroup
	one     func(hash uint64) // called for a key that has changed
	all     func()            // called when any key may have

	mu     sync.Mutex
	users  [shards]int  // waiters by shard
	linked [shards]bool // the FIFO has had a name there
	fifo   *os.File     // nil until somebody waits, and where there can't be one
	closed bool
}

func newBell(dir, id string, running *sync.WaitGroup, one func(uint64), all func()) *bell {
	return &bell{dir: dir, id: id, folder: folder[[]string]{path: dir}, running: running, one: one, all: all}
}

const fifoPrefix = "fifo-"

func (b *bell) base() string          { return baseOf(b.dir, b.id) }
func (b *bell) shard(n int) string    { return filepath.Join(b.dir, fmt.Sprintf("%02x", n)) }
func (b *bell) link(shard int) string { return filepath.Join(b.shard(shard), b.id) }
func (b *bell) tmp() string           { return filepath.Join(b.dir, "tmp-"+b.id) }
func baseOf(dir, id string) string    { return filepath.Join(dir, fifoPrefix+id) }
func isThere(err error) bool          { return err == nil || errors.Is(err, os.ErrExist) }

// listen makes a key heard from the moment when it returns.
func (b *bell) listen(hash uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := shardOf(hash)
	b.users[n]++
	if b.users[n] == 1 {
		b.enter(n)
	}
}

// ignore undoes a listen. The name in the shard stays until the next renew: who waits again and
// again for one change after the other would make and remove it each time, and each sync of the log
// would have the folder's changes to sync, too.
func (b *bell) ignore(hash uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.users[shardOf(hash)]--
}

// lingers reports whether there is a name in a shard where nobody waits.
func (b *bell) lingers() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for n, linked := range b.linked {
		if linked && b.users[n] == 0 {
			return true
		}
	}
	return false
}

// works reports whether wake-ups are heard.
func (b *bell) works() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.fifo != nil
}

// renew puts back what has been removed from the folder, and takes away what is of no use any more.
func (b *bell) renew() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for n, users := range b.users {
		switch {
		case users > 0:
			b.enter(n)
		case b.linked[n]:
			b.exit(n)
		}
	}
}

// enter sees that the FIFO is linked in a shard. Where that can't be, the bell is out of order
// until a renew mends it. b.mu is held, as for the functions below.
func (b *bell) enter(n int) {
	for range 5 { // others remove empty folders meanwhile
		if b.closed || (b.fifo == nil && b.open() != nil) {
			return
		}
		err := os.Link(b.base(), b.link(n))
		if isThere(err) {
			b.linked[n] = true
			return
		}
		if _, err := os.Lstat(b.base()); err != nil {
			b.hangUp()
		} else if !isThere(makeDir(b.shard(n))) {
			break
		}
	}
	b.hangUp()
}

func (b *bell) exit(n int) {
	b.linked[n] = false
	_ = os.Remove(b.link(n))
	_ = os.Remove(b.shard(n)) // where it is empty
}

// open makes the FIFO. It gets its name when it has a reader, so that no one takes it for a dead
// one's.
func (b *bell) open() error {
	if err := makeDir(b.dir); !isThere(err) {
		return err
	}
	b.sweep()
	if err := unix.Mkfifo(b.tmp(), 0o600); err != nil {
		return err
	}
	// Read and write: it never ends.
	f, err := os.OpenFile(b.tmp(), os.O_RDWR|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err == nil {
		share(f)
		if err = os.Rename(b.tmp(), b.base()); err != nil {
			_ = f.Close()
		}
	}
	if err != nil {
		_ = os.Remove(b.tmp())
		return err
	}
	b.fifo = f
	b.running.Go(func() { b.hear(f) })
	return nil
}

func (b *bell) hangUp() {
	if b.fifo != nil {
		_ = b.fifo.Close()
		_ = os.Remove(b.base())
		b.fifo = nil
	}
}

// close ends the goroutine and removes the store's names from the folder.
func (b *bell) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for n, linked := range b.linked {
		if linked {
			b.exit(n)
		}
	}
	b.hangUp()
}

// messageSize is that of one hash. A buffer of messages holds a whole number of them, and is
// smaller than any FIFO: so a FIFO that was full fills it.
const (
	messageSize = 8
	bufferSize  = 4096
)

// hear is the goroutine that reads the FIFO.
func (b *bell) hear(f *os.File) {
	buf := make([]byte, bufferSize)
	for {
		n, err := f.Read(buf)
		if err != nil {
			return
		}
		if n == len(buf) || n%messageSize != 0 {
			b.all() // a writer may have found it full
			continue
		}
		for m := buf[:n]; len(m) > 0; m = m[messageSize:] {
			b.one(binary.LittleEndian.Uint64(m))
		}
	}
}

// ring tells the other stores that keys with these hashes have changed.
func (b *bell) ring(hashes []uint64) {
	var messages [shards][]byte
	for _, h := range hashes {
		n := shardOf(h)
		messages[n] = binary.LittleEndian.AppendUint64(messages[n], h)
	}
	found, _ := b.folder.get(func() ([]string, error) { return readNames(b.dir) })
	if !slices.ContainsFunc(found, func(name string) bool { return strings.HasPrefix(name, fifoPrefix) && name != fifoPrefix+b.id }) {
		return // nobody but this store waits
	}
	for _, name := range found {
		n, err := strconv.ParseUint(name, 16, 8)
		if err != nil || n >= shards || messages[n] == nil {
			continue
		}
		for _, id := range names(b.shard(int(n))) {
			if id != b.id {
				b.send(int(n), id, messages[n])
			}
		}
	}
}

// send sends a message to one store, and removes what a dead one has left.
func (b *bell) send(n int, id string, message []byte) {
	link := filepath.Join(b.shard(n), id)
	fd, err := unix.Open(link, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	switch err {
	case nil:
		_, _ = unix.Write(fd, message) // full: it has been told enough
		_ = unix.Close(fd)
	case unix.ENXIO:
		_ = os.Remove(link)
		_ = os.Remove(b.shard(n))
		_ = os.Remove(baseOf(b.dir, id))
	}
}

// stale is the age from which a FIFO without its name is a dead process's: it gets that within
// microseconds.
const stale = time.Minute

// sweep removes the FIFOs of stores that ended without closing.
func (b *bell) sweep() {
	for _, name := range names(b.dir) {
		path := filepath.Join(b.dir, name)
		switch {
		case strings.HasPrefix(name, fifoPrefix):
			fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
			if err == unix.ENXIO {
				_ = os.Remove(path)
			} else if err == nil {
				_ = unix.Close(fd)
			}
		case strings.HasPrefix(name, "tmp-"):
			info, err := os.Lstat(path)
			if err == nil && clock.System().Wall().Sub(info.ModTime()) > stale {
				_ = os.Remove(path)
			}
		}
	}
}

// names returns the names in a folder, as far as it can be read: none if it isn't there.
func names(dir string) []string {
	found, _ := readNames(dir)
	return found
}

// readNames is part of a commit: os.ReadDir, which tries to poll the folder first, takes twice as
// long.
func readNames(dir string) (found []string, err error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	var buf [4096]byte
	for {
		n, err := unix.ReadDirent(fd, buf[:])
		if err != nil || n <= 0 {
			return found, err
		}
		_, _, found = unix.ParseDirent(buf[:n], -1, found)
	}
}
