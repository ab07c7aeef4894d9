package clock

import "golang.org/x/sys/windows"

func now() Instant { return Instant(windows.DurationSinceBoot()) }
