package clock

import (
	"time"

	"golang.org/x/sys/windows"
)

// resolution is that of GetTickCount64: one tick of 1/64 s, which is 15.625 ms, in whole
// milliseconds.
const resolution = 16 * time.Millisecond

func (system) Now() Instant { return Instant(windows.DurationSinceBoot()) }
