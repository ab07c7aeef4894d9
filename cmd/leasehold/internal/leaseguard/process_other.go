//go:build unix && !linux

package leaseguard

import "golang.org/x/sys/unix"

func endMarked(string) bool { return false }

// groupLives counts what has ended and waits to be reaped, too.
func groupLives(group int) bool { return unix.Kill(-group, 0) != unix.ESRCH }

// KillCgroup does nothing: only Linux has control groups.
func KillCgroup(string) (left bool) { return false }

// RemoveCgroup does nothing.
func RemoveCgroup(string) {}
