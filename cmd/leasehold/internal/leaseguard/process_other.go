//go:build unix && !linux

package leaseguard

import "syscall"

func endMarked(string) bool { return false }

// groupLives counts what has ended and waits to be reaped, too.
func groupLives(group int) bool { return syscall.Kill(-group, 0) != syscall.ESRCH }

// KillCgroup does nothing: only Linux has control groups.
func KillCgroup(string) (left bool) { return false }

// RemoveCgroup does nothing.
func RemoveCgroup(string) {}
