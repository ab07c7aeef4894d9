//go:build unix

package bench

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/leasehold/leasehold/clock"
)

// appendSynced appends 4 KiB n times to a file in dir, each synchronized, and returns how many were done in a second.
func appendSynced(dir string, n int) (perSecond float64, err error) {
	f, err := os.Create(filepath.Join(dir, "synced"))
	if err != nil {
		return 0, err
	}
	defer func() { _ = f.Close() }()
	page := make([]byte, 4096)
	clk := clock.System()
	start := clk.Now()
	for range n {
		if _, err := f.Write(page); err != nil {
			return 0, err
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			return 0, err
		}
	}
	return float64(n) / clk.Now().Sub(start).Seconds(), nil
}

// rate reports how many operations were done in a second, and how many that is for each synchronous append, measured right
// afterwards: the load of the machine may change from one benchmark to the next.
func rate(b *testing.B, ops int) {
	b.Helper()
	b.StopTimer()
	perSecond := float64(ops) / b.Elapsed().Seconds()
	synced, err := appendSynced(b.TempDir(), 500)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(perSecond, "ops/s")
	b.ReportMetric(perSecond/synced, "ops/fsync")
}

// BenchmarkSync is the file system's own synchronous append of 4 KiB.
func BenchmarkSync(b *testing.B) {
	perSecond, err := appendSynced(b.TempDir(), b.N)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(perSecond, "ops/s")
}
