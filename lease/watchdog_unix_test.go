//go:build unix

package lease_test

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leasehold/leasehold/lease"
)

// A process that was stopped by SIGSTOP for longer than its lease ends when it goes on.
func TestWatchdogAfterSIGSTOP(t *testing.T) {
	if fate := os.Getenv(watchdogChild); fate != "" {
		child(fate)
	}
	p, finish := startChild(t, "stopped")
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // five times the TTL
	if err := p.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if code, out := finish(); code != 79 || !strings.Contains(out, string(lease.Expired)) {
		t.Errorf("exit code %d: %s", code, out)
	}
}
