//go:build linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
)

// A guard that a fault has killed counts as one no more when the next fault looks: that would else leave none.
func TestAFaultLeavesAGuard(t *testing.T) {
	program, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip(err)
	}
	named := filepath.Join(t.TempDir(), guardName)
	if err := os.Symlink(program, named); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		var guards []*exec.Cmd
		for range 2 {
			guard := exec.CommandContext(t.Context(), named, "1000")
			if err := guard.Start(); err != nil {
				t.Fatal(err)
			}
			guards = append(guards, guard)
		}
		self, err := os.FindProcess(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		s := &supervisors{clk: clock.System(), config: config{TTL: time.Second}, counts: map[faultOf]int{}, slots: []*supervisor{{cmd: &exec.Cmd{Process: self}}}}
		if !s.strike(t.Context(), fault{kind: faultGuard}) {
			t.Error("no guards were found")
		}
		left := len(guardsOf(os.Getpid()))
		for _, guard := range guards {
			_ = guard.Process.Kill()
			_ = guard.Wait()
		}
		if left != 1 {
			t.Fatalf("after one was killed %d guards count", left)
		}
	}
}
