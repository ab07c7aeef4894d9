package file

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// cpu returns the CPU time that a process has used, in user and in system mode.
func cpu(t testing.TB, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+2:]))
	var ticks int
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond // USER_HZ is 100 on every architecture of Go's
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
	time.Sleep(5 * time.Second) // what starting took is over
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
