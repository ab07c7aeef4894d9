package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What no server on this machine can be faster than: net/http that does nothing, and the disk.

const floorHelper = "LEASEHOLD_BENCH_NOTHING"

// serveNothing is a process that answers every request at once, as Leasehold would answer an acquisition.
func serveNothing(addr string) error {
	l, err := net.Listen("tcp", addr) //nolint:noctx // it is there or it isn't
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	return http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { //nolint:gosec // no limits: it is to do nothing
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Leasehold-Sequencer", "nothing")
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"name":"nothing","state":"held","holder":"http/0123456789abc","token":1795290000000,"ttl":60,"waiters":0,"sequencer":"nothing"}`))
	}))
}

// startNothing starts that process.
func startNothing(b *testing.B) (func(*wire) (locker, error), string, int) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.CommandContext(context.Background(), self)
	cmd.Env = append(os.Environ(), floorHelper+"=127.0.0.1:0")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return func(w *wire) (locker, error) { return leaseholdClient{w}, nil }, strings.TrimSpace(addr), cmd.Process.Pid
}

// BenchmarkSync writes a page into a file that is there, and syncs it.
func BenchmarkSync(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "f"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = f.Close() })
	page := make([]byte, 4096)
	var took []time.Duration
	for b.Loop() {
		begun := time.Now()
		if _, err := f.WriteAt(page, 0); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begun))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "syncs/s")
	percentiles(b, took)
}
