//go:build darwin || freebsd || netbsd || openbsd

package clock

import "golang.org/x/sys/unix"

const resolution = 0 // a fraction of a microsecond

func (system) Now() Instant {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return Instant(ts.Nano())
}
