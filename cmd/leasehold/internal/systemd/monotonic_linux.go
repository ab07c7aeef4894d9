package systemd

import "golang.org/x/sys/unix"

// monotonic returns CLOCK_MONOTONIC in microseconds, by which systemd tells an old message from a
// new one.
func monotonic() int64 {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // it fails for clocks that aren't there
	return now.Nano() / 1000
}
