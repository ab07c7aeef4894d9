package file

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// cpu returns the CPU time that a process has used, in user and in system mode, to the nanosecond: /proc/<pid>/stat counts
// in ticks of 10 ms, more than an idle process uses in a minute.
func cpu(t testing.TB, pid int) (sum time.Duration) {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(tasks) == 0 {
		t.Fatalf("no tasks of %d: %v", pid, err)
	}
	for _, task := range tasks {
		stat, err := os.ReadFile(task)
		if err != nil {
			t.Fatal(err)
		}
		var ns int64
		if _, err := fmt.Sscan(string(stat), &ns); err != nil {
			t.Fatal(err)
		}
		sum += time.Duration(ns)
	}
	return sum
}

// BenchmarkIdleWaiters is what 100 processes use that wait for a record, each for one of its own, while nothing happens. It
// takes half a minute; run it with -benchtime 1x.
func BenchmarkIdleWaiters(b *testing.B) {
	const processes, idle = 100, 30 * time.Second
	path := testPath(b)
	var ps []*process
	for i := range processes {
		ps = append(ps, start(b, "echo", helperArgs{Path: path, Key: fmt.Sprint("k", i)}))
	}
	for _, p := range ps {
		p.line(b)
	}
	time.Sleep(netMax + 2*time.Second) // what starting took is over, the first look too
	used := func() (sum time.Duration) {
		for _, p := range ps {
			sum += cpu(b, p.cmd.Process.Pid)
		}
		return sum
	}
	before := used()
	time.Sleep(idle)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(100*float64(used()-before)/float64(idle), "%core")
	for _, p := range ps {
		p.stop(b)
	}
}
