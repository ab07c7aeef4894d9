package file

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// life is the kernel's proof that this process lives: a lock on one byte of path.lock, which no
// other process ever locks. It is of an open file description, so that the kernel drops it when the
// last process that has that open has ended, and not before. It is no boot id, which containers
// have of their own, nor a process id, which comes again. Locks are the inode's: they hold between
// mount, PID and time namespaces.
//
// A process has one life for each file, however often it opens the store. Once a record has named
// it, it lasts to the end of the process: a holder may count on its term after the store was
// closed.
type life struct {
	name  string
	file  *os.File // its description holds the lock; it is closed on exec
	key   string   // in lives
	users int      // stores of this process; guarded by lives
	owned bool     // a record names it; guarded by lives
	fifo  *os.File // see announce; guarded by lives
}

// lives are those of this process, by the identity of their file.
var lives = struct {
	sync.Mutex
	byFile map[string]*life
}{byFile: map[string]*life{}}

// family is the lives in one file, as one store sees them. Its name is that of the inode, by number
// and by time of birth: a file that was put in its place, or a copy, proves nothing of those who
// locked the one before.
type family struct {
	name string
	lock *os.File // of the store; its description holds no life
}

// The bytes of path.lock that are locked as lives. Those above are the writer's signature.
const (
	firstLife = 1 << 10
	lastLife  = 1 << 60
)

// familyIn returns the family of a lock file, and a key that no other file of this machine has. It
// is nil where the file system keeps no time of birth.
func familyIn(f *os.File) (fam *family, key string) {
	var st unix.Statx_t
	const want = unix.STATX_INO | unix.STATX_BTIME
	stat := func(fd uintptr) error { return unix.Statx(int(fd), "", unix.AT_EMPTY_PATH, want, &st) }
	if err := withFD(f, stat); err != nil || st.Mask&want != want {
		return nil, ""
	}
	born := uint64(st.Btime.Sec)*1e9 + uint64(st.Btime.Nsec)
	name := strconv.FormatUint(st.Ino, 36) + "." + strconv.FormatUint(born, 36)
	return &family{name: name, lock: f}, fmt.Sprintf("%d.%d.%s", st.Dev_major, st.Dev_minor, name)
}

// bear returns the family in the lock file of a store, and this process's life there; nil where the
// kernel doesn't vouch for it.
func bear(lock *lockFile) (*family, *life) {
	fam, key := familyIn(lock.f)
	if fam == nil {
		return nil, nil
	}
	lives.Lock()
	defer lives.Unlock()
	l := lives.byFile[key]
	if l == nil {
		if l = fam.newLife(); l == nil {
			return nil, nil
		}
		l.key, lives.byFile[key] = key, l
	}
	l.users++
	return fam, l
}

func (fam *family) newLife() *life {
	f, err := os.OpenFile(fam.lock.Name(), os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	at := firstLife + rand.Int64N(lastLife-firstLife)
	l := &life{name: fam.name + "." + strconv.FormatInt(at, 36), file: f}
	there, _ := familyIn(f)
	if there == nil || there.name != fam.name || setLock(f, unix.F_OFD_SETLK, unix.F_WRLCK, at, 1) != nil || fam.standing(l.name) != alive {
		_ = f.Close()
		return nil
	}
	return l
}

// release is called when a store is closed.
func (l *life) release() {
	lives.Lock()
	defer lives.Unlock()
	if l.users--; l.users == 0 && !l.owned {
		delete(lives.byFile, l.key)
		_ = l.file.Close()
	}
}

// own has the life last as long as the process: a record is to name it.
func (l *life) own(dir string) {
	lives.Lock()
	defer lives.Unlock()
	if !l.owned {
		l.owned = true
		l.fifo = l.announce(dir)
	}
}

// announce opens the FIFO by which others hear of the end of this life without polling: whoever
// reads it then meets its end. It is a hint; the lock is the proof.
func (l *life) announce(dir string) *os.File {
	_ = makeDir(dir)
	l.sweep(dir)
	path := lifeFIFO(dir, l.name)
	if err := unix.Mkfifo(path, 0o600); !isThere(err) {
		return nil
	}
	// For writing alone it would need a reader.
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil
	}
	share(f)
	return f
}

const lifePrefix = "life-"

func lifeFIFO(dir, name string) string { return filepath.Join(dir, lifePrefix+name) }

// sweep removes the FIFOs of lives that have ended.
func (l *life) sweep(dir string) {
	fam, _ := familyIn(l.file) // its description holds this life, which has no FIFO yet
	for _, name := range names(dir) {
		life, ok := strings.CutPrefix(name, lifePrefix)
		if ok && fam != nil && life != l.name && fam.standing(life) == gone {
			_ = os.Remove(filepath.Join(dir, name))
		}
	}
}

func (l *life) proof(dir string) []*os.File {
	l.own(dir)
	if l.fifo == nil {
		return []*os.File{l.file}
	}
	return []*os.File{l.file, l.fifo}
}

// standing tells how the process stands that has the life of that name.
func (fam *family) standing(name string) standing {
	number, ok := strings.CutPrefix(name, fam.name+".")
	at, err := strconv.ParseInt(number, 36, 64)
	if !ok || err != nil || at < firstLife || at >= lastLife {
		return unknown
	}
	lock, err := getLock(fam.lock, at, 1)
	switch {
	case err != nil:
		return unknown
	case lock.Type == unix.F_UNLCK:
		return gone
	}
	return alive
}

// setLock changes the lock of f's description on n bytes.
func setLock(f *os.File, cmd int, kind int16, at, n int64) error {
	lock := unix.Flock_t{Type: kind, Start: at, Len: n}
	return withFD(f, func(fd uintptr) error { return unix.FcntlFlock(fd, cmd, &lock) })
}

// getLock returns the first lock in the way of one on n bytes, which is of another description. Its
// type is F_UNLCK if there is none.
func getLock(f *os.File, at, n int64) (unix.Flock_t, error) {
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: at, Len: n}
	err := withFD(f, func(fd uintptr) error { return unix.FcntlFlock(fd, unix.F_OFD_GETLK, &lock) })
	return lock, err
}

const nsfsMagic = 0x6e736673

// clockSpace names the clock of this process among those of one boot, by the time namespace, whose
// number no other has while one process is in it. It is "" where the kernel doesn't say.
func clockSpace() string {
	const path = "/proc/self/ns/time"
	var fs unix.Statfs_t
	var st unix.Stat_t
	if unix.Statfs(path, &fs) != nil || fs.Type != nsfsMagic || unix.Stat(path, &st) != nil {
		return ""
	}
	return strconv.FormatUint(st.Ino, 36)
}

// awaitEnd blocks until no process has the FIFO of a life open any more, as when there is none, or
// until stop is closed: then it returns false.
func awaitEnd(dir, name string, stop <-chan struct{}) bool {
	f, err := os.OpenFile(lifeFIFO(dir, name), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return true
	}
	defer func() { _ = f.Close() }()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, f)
	}()
	select {
	case <-ended:
		return true
	case <-stop:
		_ = f.Close()
		<-ended
		return false
	}
}
