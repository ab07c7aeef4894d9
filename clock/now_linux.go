package clock

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

const resolution = 0 // a fraction of a microsecond

// Now is unix.ClockGettime without telling the scheduler of a call that never blocks, which takes
// as long as that itself.
func (system) Now() Instant {
	var ts unix.Timespec
	// The call can't fail: the clock exists since Linux 2.6.39, and the address is valid.
	_, _, _ = unix.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_BOOTTIME, uintptr(unsafe.Pointer(&ts)), 0)
	return Instant(ts.Nano())
}
