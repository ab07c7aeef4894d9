//go:build unix

package accept

import "syscall"

// Files returns how many files and connections this process may have open at a time, 0 if that is
// not known. Go has raised the soft limit to the hard one by the time that a program begins.
func Files() int {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	const plenty = 1 << 30                     // as good as none
	return int(min(uint64(limit.Cur), plenty)) //nolint:unconvert // it is signed on some systems
}
