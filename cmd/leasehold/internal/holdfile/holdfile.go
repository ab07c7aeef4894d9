// Package holdfile keeps what proves a hold in a file, so that one process can acquire a name, and
// others renew and release it. Only the user who made the file can read it.
package holdfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
)

// Hold is what a file says. The file is there before the name is acquired: a process that was
// killed in between has left what releases the name.
type Hold struct {
	Format int         `json:"format"`
	Name   string      `json:"name"`
	Holder string      `json:"holder"`
	Token  fence.Token `json:"token"`           // 0 until the name is acquired
	Secret string      `json:"secret"`          // proves that the file is that of the term
	Store  string      `json:"store,omitempty"` // the store's URL, for a command that names none

	// Until is the instant of the clock of boot Boot at which the hold ends unless it is renewed.
	Boot   string        `json:"boot,omitempty"`
	Until  clock.Instant `json:"valid_until,omitempty"`
	Keeper int           `json:"keeper,omitempty"` // the process that renews it; 0 for none
	Lost   string        `json:"lost,omitempty"`   // why it was lost, if the keeper has seen that
}

const format = 1

// room is the size of a file. It is written once before the name is acquired, so that a full disk
// shows then, and what is written later takes the place of that.
const room = 4096

// File is a hold's file that is open. It has a lock, which the processes that use it take one after
// the other.
type File struct {
	f    *os.File
	path string
}

// ErrExists is matched by the error of Create for a file that is there.
var ErrExists = errors.New("there is a file already")

// Create makes the file, of mode 0600, and never follows a symbolic link.
func Create(path string, h Hold) (*File, error) {
	f, err := create(path)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil, fmt.Errorf("%s: %w: if it is that of an earlier hold, end that first: leasehold release --hold %s", path, ErrExists, path)
	case err != nil:
		return nil, fmt.Errorf("%s: the file of the hold can't be made: %w", path, err)
	}
	file := &File{f, path}
	if err := errors.Join(f.Chmod(0o600), file.Write(h)); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: the file of the hold can't be written: %w", path, err), file.Remove())
	}
	return file, nil
}

// Open opens a file, and waits for its lock. It refuses a file that another user could have made,
// or read. The error of a file that isn't there matches [fs.ErrNotExist].
func Open(path string) (*File, Hold, error) {
	f, err := open(path)
	if err != nil {
		return nil, Hold{}, fmt.Errorf("%s: the file of the hold can't be opened: %w", path, err)
	}
	file := &File{f, path}
	h, err := file.Lock()
	if err != nil {
		return nil, Hold{}, errors.Join(err, file.Close())
	}
	return file, h, nil
}

// FromFD returns the file that a process was given open. It does no I/O.
func FromFD(fd uintptr, path string) *File { return &File{os.NewFile(fd, path), path} }

// Handle is the open file, to give to another process.
func (f *File) Handle() *os.File { return f.f }

// ErrRemoved is matched by the error of a file that was removed: its hold was released.
var ErrRemoved = errors.New("the file of the hold was removed")

// Lock waits for the lock, and reads the file.
func (f *File) Lock() (Hold, error) {
	if err := lock(f.f); err != nil {
		return Hold{}, fmt.Errorf("%s: %w", f.path, err)
	}
	links, err := inspect(f.f, f.path)
	if err != nil {
		return Hold{}, err
	}
	if links == 0 {
		return Hold{}, fmt.Errorf("%s: %w", f.path, ErrRemoved)
	}
	b, err := io.ReadAll(io.NewSectionReader(f.f, 0, 16*room))
	if err != nil {
		return Hold{}, fmt.Errorf("%s: %w", f.path, err)
	}
	var h Hold
	if err := json.Unmarshal(b, &h); err != nil || h.Name == "" || h.Holder == "" || h.Secret == "" {
		return Hold{}, fmt.Errorf("%s: not the file of a hold: want one that `leasehold acquire --hold` has made", f.path)
	}
	if h.Format != format {
		return Hold{}, fmt.Errorf("%s: written by a newer Leasehold (format %d, this program knows %d): use that one", f.path, h.Format, format)
	}
	return h, nil
}

// Unlock lets the next process in.
func (f *File) Unlock() error { return unlock(f.f) }

// Write writes over what the file says. The caller has the lock, or has just made the file.
func (f *File) Write(h Hold) error {
	h.Format = format
	b, err := json.MarshalIndent(h, "", "  ")
	if err != nil {
		return err
	}
	if pad := room - 1 - len(b); pad > 0 {
		b = append(b, bytes.Repeat([]byte(" "), pad)...)
	}
	if _, err := f.f.WriteAt(append(b, '\n'), 0); err != nil {
		return err
	}
	return f.f.Sync()
}

// Remove removes the file, and closes it.
func (f *File) Remove() error {
	err := os.Remove(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, f.f.Close())
}

// Close closes the file, and with it the lock.
func (f *File) Close() error { return f.f.Close() }

// Boot names the boot of this machine, in which instants of the clock can be compared; "" where
// the system doesn't say.
func Boot() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// Here reports whether Until can be compared with the clock of this process.
func (h Hold) Here() bool { return h.Boot != "" && h.Boot == Boot() }
