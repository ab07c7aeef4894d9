//go:build unix && !linux

package supervise

import "golang.org/x/sys/unix"

// dieWithParent: here it is the guard that ends the command.
func dieWithParent(*unix.SysProcAttr) {}

// adopt: here orphans go to process 1, out of reach unless they are in the group.
func adopt() error { return nil }

func children() []int { return nil }

func awaited() map[int]bool { return nil }

func hasEnded(int) bool { return false }

func anyEnded() bool { return false }

// parentOf: not known here.
func parentOf(int) int { return 0 }

// lastSignal is the highest number of a signal.
const lastSignal = 31

// findsDescendants: here nothing leads from a process that left its group to what started it.
const findsDescendants = false
