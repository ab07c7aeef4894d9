//go:build unix && !linux

package leaseguard

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/leasehold/leasehold/clock"
)

func now() int64 { return int64(clock.System().Now()) }

// slice bounds one wait: the kernel's time-outs may not count while the machine is suspended.
const slice = time.Second

// awaitInput blocks until there is something to read from the supervisor, or its end, and returns
// false when the time has come before.
func awaitInput(until int64) bool {
	for {
		left := until - now()
		tv := unix.NsecToTimeval(max(0, min(left, int64(slice))))
		var in unix.FdSet
		in.Set(0)
		n, err := unix.Select(1, &in, nil, nil, &tv)
		switch {
		case err == unix.EINTR:
		case err != nil || n > 0: // where it can't be waited for, to read says so
			return true
		case left <= 0:
			return false
		}
	}
}

func rename(string) {}
