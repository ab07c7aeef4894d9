package leaseguard

import (
	"syscall"
	"time"
	"unsafe"
)

const (
	clockBoottime = 7  // CLOCK_BOOTTIME, the clock of package clock
	prSetName     = 15 // PR_SET_NAME
	pollIn        = 1  // POLLIN
)

// now reads the clock that goes on while the machine is suspended.
func now() int64 {
	var ts syscall.Timespec
	// The call can't fail: the clock exists since Linux 2.6.39, and the address is valid.
	_, _, _ = syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockBoottime, uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Nano()
}

// slice bounds one wait: the kernel's time-outs don't count while the machine is suspended.
const slice = time.Second

// awaitInput blocks until there is something to read from the supervisor, or its end, and returns
// false when the time has come before.
func awaitInput(until int64) bool {
	for {
		left := until - now()
		ts := syscall.NsecToTimespec(max(0, min(left, int64(slice))))
		fd := struct {
			fd              int32
			events, revents int16
		}{events: pollIn}
		n, _, err := syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&fd)), 1, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
		switch {
		case err == syscall.EINTR:
		case err != 0 || n > 0: // where it can't be waited for, to read says so
			return true
		case left <= 0:
			return false
		}
	}
}

// rename is for people.
func rename(name string) {
	text := append([]byte(name), 0)
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetName, uintptr(unsafe.Pointer(&text[0])), 0)
}
