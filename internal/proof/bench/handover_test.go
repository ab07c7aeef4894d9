//go:build unix

package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/file"
)

// takerEnv makes the test binary a taker; its value is the store's file.
const takerEnv = "LEASEHOLD_BENCH_TAKER"

func TestMain(m *testing.M) {
	if path := os.Getenv(takerEnv); path != "" {
		if err := take(path); err != nil {
			fmt.Fprintln(os.Stderr, "taker:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// take acquires the name whenever it is told to by a line, says "waiting" when somebody else has it and "held" with the
// instant when it has it, and releases it before it reads the next line.
func take(path string) error {
	ctx := context.Background()
	st, err := file.Open(ctx, path, file.Options{})
	if err != nil {
		return err
	}
	m, err := lease.NewManager(st, lease.Options{OnWait: func(*lease.HeldError) { fmt.Println("waiting 0") }})
	if err != nil {
		return err
	}
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		l, err := m.Acquire(ctx, "name")
		if err != nil {
			return err
		}
		fmt.Println("held", int64(clock.System().Now()))
		if err := l.Release(ctx); err != nil {
			return err
		}
	}
	if err := m.Close(); err != nil {
		return err
	}
	return st.Close()
}

// BenchmarkHandover is the time from before a release until another process, which was waiting, has the lease.
func BenchmarkHandover(b *testing.B) {
	path := filepath.Join(b.TempDir(), "bench.db")
	st, err := file.Open(b.Context(), path, file.Options{})
	if err != nil {
		b.Fatal(err)
	}
	closeAfter(b, st)
	m := newManager(b, st, lease.Options{})
	in, out := startTaker(b, path)
	clk := clock.System()
	var took []time.Duration
	for b.Loop() {
		l, err := m.Acquire(b.Context(), "name")
		if err != nil {
			b.Fatal(err)
		}
		var what string
		var at clock.Instant
		if _, err := fmt.Fprintln(in, "go"); err != nil {
			b.Fatal(err)
		}
		if _, err := fmt.Fscanln(out, &what, &at); err != nil || what != "waiting" {
			b.Fatalf("the taker says %q, %v", what, err)
		}
		_ = clock.Sleep(b.Context(), clk, 2*time.Millisecond) // it has said so just before it waits
		start := clk.Now()
		if err := l.Release(b.Context()); err != nil {
			b.Fatal(err)
		}
		if _, err := fmt.Fscanln(out, &what, &at); err != nil || what != "held" {
			b.Fatalf("the taker says %q, %v", what, err)
		}
		took = append(took, at.Sub(start))
	}
	slices.Sort(took)
	b.ReportMetric(0, "ns/op") // it would count the preparations
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

func startTaker(b *testing.B, path string) (io.Writer, io.Reader) {
	b.Helper()
	exe, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.CommandContext(b.Context(), exe)
	cmd.Env = append(os.Environ(), takerEnv+"="+path)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	return in, bufio.NewReader(out)
}
