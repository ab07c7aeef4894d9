package file

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What is acknowledged survives a loss of power: the log was synced after the write, and before the answer. The kernel's own account
// tells, since a loss of power can't be had.
func TestFinding_S12_AWriteIsSyncedBeforeItIsAcknowledged(t *testing.T) {
	tool, err := exec.LookPath("strace")
	if err != nil {
		lacking(t, "strace")
	}
	path := testPath(t)
	log := filepath.Join(t.TempDir(), "calls")
	p := start(t, "write", helperArgs{Path: path, N: 1}, tool, "-f", "-qq", "-y", "-s", "16", "-o", log,
		"-e", "trace=pwrite64,write,fsync,fdatasync")
	o := newOutcomes()
	o.follow(t, p, ready(t, p), 100, "ok")
	o.check(t, path)
	calls, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	dirty, acknowledged := false, 0
	for line := range strings.Lines(string(calls)) {
		switch {
		case strings.Contains(line, " pwrite64(") && strings.Contains(line, "-wal>"):
			dirty = true
		case strings.Contains(line, "sync(") && strings.Contains(line, "-wal>"):
			dirty = false
		case strings.Contains(line, `"ok key0`):
			acknowledged++
			if dirty {
				t.Fatalf("acknowledged before the log was synced: %s", line)
			}
		}
	}
	if acknowledged < 50 {
		t.Errorf("%d writes were acknowledged; lines: %v", acknowledged, o.lines)
	}
}
