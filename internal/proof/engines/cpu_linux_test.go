package engines

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// spent is processor time: of this process, which the clients are in, and of the servers that it started.
type spent struct{ clients, servers time.Duration }

// spending returns the processor time spent so far. That of servers is counted in ticks, of 10 ms as a rule.
func spending(b *testing.B) spent {
	b.Helper()
	var use unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	s := spent{clients: time.Duration(use.Utime.Nano() + use.Stime.Nano())}
	type process struct {
		parent string
		ticks  int64
	}
	all := map[string]process{}
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		b.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:]) // from the third one on, the state
		user, err1 := strconv.ParseInt(string(fields[11]), 10, 64)
		system, err2 := strconv.ParseInt(string(fields[12]), 10, 64)
		if err1 != nil || err2 != nil {
			b.Fatalf("%s: %q", file, text)
		}
		all[filepath.Base(filepath.Dir(file))] = process{string(fields[1]), user + system}
	}
	self := strconv.Itoa(os.Getpid())
	const tick = 10 * time.Millisecond // USER_HZ, which is 100 for all programs
	for _, p := range all {
		for parent := p.parent; parent != ""; parent = all[parent].parent {
			if parent == self {
				s.servers += time.Duration(p.ticks) * tick
				break
			}
		}
	}
	return s
}
