//go:build unix

package lease_test

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A process that was stopped by SIGSTOP for longer than its lease ends when it goes on. If it met a stall of the machine before, that
// may have ended it already, and a stop in the middle of a renewal looks like an outage: TestWatchdogOfAProcessThatWasStopped has
// the causes.
func TestWatchdogAfterSIGSTOP(t *testing.T) {
	if fate := os.Getenv(watchdogChild); fate != "" {
		child(fate)
	}
	p, finish := startChild(t, "stopped")
	signal := func(s os.Signal) {
		t.Helper()
		if err := p.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	time.Sleep(2 * stoppable)
	signal(syscall.SIGCONT)
	if code, out := finish(); code != 79 || !strings.Contains(out, "watchdog: lease job (token ") {
		t.Errorf("exit code %d: %s", code, out)
	}
}
