//go:build linux

package versions

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
)

// The environment of a guarded job, which this test binary is when these are set.
const (
	ticksEnv = "LEASEHOLD_VERSIONS_TICKS" // the folder that it writes to
	whoEnv   = "LEASEHOLD_VERSIONS_WHO"   // the version of the command that runs it
	lastsEnv = "LEASEHOLD_VERSIONS_LASTS" // a duration; "" is until it is ended
)

// tick is how often a job shows that it lives.
const tick = 5 * time.Millisecond

func TestMain(m *testing.M) {
	if os.Getenv(ticksEnv) == "" {
		code := m.Run()
		_ = os.RemoveAll(built)
		os.Exit(code)
	}
	if err := live(); err != nil {
		fmt.Fprintln(os.Stderr, "job:", err)
		os.Exit(1)
	}
}

// live writes a line with its token, the version that runs it and the time, again and again, to the file of
// its name: O_APPEND has the lines of all jobs of a name in the order in which they were written.
func live() error {
	clk := clock.System()
	end := clock.NoDeadline
	if text := os.Getenv(lastsEnv); text != "" {
		lasts, err := time.ParseDuration(text)
		if err != nil {
			return err
		}
		end = clk.Now().Add(lasts)
	}
	f, err := os.OpenFile(ticksFile(os.Getenv(ticksEnv), os.Getenv("LEASEHOLD_NAME")), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	for now := clk.Now(); now < end; now = clk.Now() {
		if _, err := fmt.Fprintf(f, "%s %s %d\n", os.Getenv("LEASEHOLD_TOKEN"), os.Getenv(whoEnv), now); err != nil {
			return err
		}
		if err := clock.Sleep(context.Background(), clk, tick); err != nil {
			return err
		}
	}
	return f.Close()
}

func ticksFile(dir, name string) string { return filepath.Join(dir, url.PathEscape(name)) }
