package supervise

import (
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/leaseguard"
)

// A supervisor that is killed just when it has replaced a guard leaves one that knows what to end.
func TestFinding_S9_AGuardKnowsWhatToEndFromItsFirstMoment(t *testing.T) {
	const mark = "the mark of this test"
	work := exec.Command("sleep", "1000")
	work.Env = []string{EnvMark + "=" + mark}
	if err := work.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(time.Minute, func() { _ = work.Process.Signal(unix.SIGTERM) })
	defer late.Stop()
	gs := &guards{clk: clock.System(), scope: leaseguard.Scope{Mark: mark}, start: func(first string, argv []string) (*guard, error) {
		g, err := startGuard(first, argv, nil)
		if err == nil {
			g.close() // as the kernel does when the supervisor dies
			g.pipe = -1
		}
		return g, err
	}}
	if err := gs.look(func(int) {}); err != nil {
		t.Log(err) // the guards may have ended again
	}
	if err := work.Wait(); err == nil || work.ProcessState.Sys().(interface{ Signal() unix.Signal }).Signal() != unix.SIGKILL {
		t.Errorf("what it had to end: %v", err)
	}
	gs.close()
}
