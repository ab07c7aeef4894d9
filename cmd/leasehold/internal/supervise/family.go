//go:build unix

package supervise

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leasehold/leasehold/clock"
)

// family tells apart whose the children of this process are: those that descendants of the command
// left to it, and those that somebody here started and waits for, as os/exec does, for a probe, or
// for the SDK of a store that runs a program to get credentials. To reap one of those would be to
// steal its exit code, and to end it no business of the supervisor's.
type family struct {
	clk    clock.Clock
	guards map[int]bool // which are reaped elsewhere

	// before are strangers that were there before the command: children of a shell that became this
	// program by exec, say.
	before map[int]bool

	// blind is whether the kernel is too old for os/exec to wait by file descriptor (before 5.4),
	// so that its children can't be known.
	blind bool
	ended map[int]clock.Instant // strangers, when they were seen to have ended; only if it is blind
}

// unclaimed is after how long an ended child is nobody's where it can't be known whose it is: who
// waits for one reaps it at once.
const unclaimed = 10 * time.Second

// newFamily is to be called before the command and its guards are started: as a rule there is no
// child at all then, which costs one system call.
func newFamily(clk clock.Clock) *family {
	f := &family{clk: clk, guards: map[int]bool{}, blind: true, before: map[int]bool{}, ended: map[int]clock.Instant{}}
	for _, pid := range f.strangers() {
		f.before[pid] = true
	}
	return f
}

// guardedBy is to be called before the guards are released.
func (f *family) guardedBy(gs *guards) {
	for _, g := range gs.all {
		f.guards[g.pid], f.blind = true, g.blind()
	}
}

// strangers returns the children that nobody here waits for, as far as can be known.
func (f *family) strangers() (pids []int) {
	all := slices.DeleteFunc(children(), func(pid int) bool { return f.guards[pid] })
	if len(all) == 0 {
		return nil
	}
	own := awaited() // after that: who is on the list has its file descriptor
	return slices.DeleteFunc(all, func(pid int) bool { return own[pid] })
}

// orphans returns what the command's descendants left to this process. The command itself may be
// among them.
func (f *family) orphans() (pids []int) {
	for _, pid := range f.strangers() {
		if !f.before[pid] && !(f.blind && hasEnded(pid)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// reap reaps the strangers that have ended, but not the command, whose status is of interest; it is
// 0 once that is known.
func (f *family) reap(command int) {
	if !anyEnded() {
		return
	}
	for _, pid := range f.strangers() {
		if pid != command && f.claimable(pid) && reaped(pid) {
			delete(f.before, pid)
			delete(f.ended, pid)
		}
	}
}

// claimable reports whether a stranger may be reaped, if it has ended.
func (f *family) claimable(pid int) bool {
	if !f.blind {
		return true
	}
	now := f.clk.Now()
	since, known := f.ended[pid]
	if !known && hasEnded(pid) {
		f.ended[pid] = now
	}
	return known && now.Sub(since) >= unclaimed
}

// reaped reaps a child if it has ended, and reports whether it had.
func reaped(pid int) bool {
	for {
		got, err := unix.Wait4(pid, nil, unix.WNOHANG, nil)
		if err != unix.EINTR {
			return err == nil && got == pid
		}
	}
}
