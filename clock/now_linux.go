package clock

import "golang.org/x/sys/unix"

const resolution = 0 // a fraction of a microsecond

func now() Instant {
	var ts unix.Timespec
	// The call can't fail: the clock exists since Linux 2.6.39, and the address is valid.
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts)
	return Instant(ts.Nano())
}
