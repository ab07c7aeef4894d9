package file

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leasehold/leasehold/clock"
)

// The holder of the file lock signs it with a second lock, which says since when by where it
// begins, and who by its length. That costs no write, and goes with the process.
const (
	signatures = 1 << 61 // and as many milliseconds since 1970 on
	signatory  = 1 << 50
)

var self = int64(os.Getpid()) // each call is one of the system

func (l *lockFile) sign() {
	_ = setLock(l.f, unix.F_OFD_SETLK, unix.F_WRLCK, signatures+clock.System().Wall().UnixMilli(), self)
}

func (l *lockFile) unsign() { _ = setLock(l.f, unix.F_OFD_SETLK, unix.F_UNLCK, signatures, signatory) }

// holder says in brackets who holds the file lock, and since when, as far as that is known.
func (l *lockFile) holder() string {
	lock, err := getLock(l.f, signatures, signatory)
	if err != nil || lock.Type == unix.F_UNLCK {
		return " (stopped, perhaps)"
	}
	since := time.UnixMilli(lock.Start - signatures)
	return fmt.Sprintf(" (process %d since %s; stopped, perhaps)", lock.Len, since.Format(time.RFC3339))
}
