package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/cli"
)

// Who waits for the lock of a file can't give up waiting: an attempt that is given up keeps a thread and an open file until the lock is
// free. So a command that waits for a file makes one attempt, and says for what it waits.
func TestFinding_L6_AFileIsWaitedForOnce(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	lock, err := os.Create(p.path("leases.db.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	prog := p.start("elect", "job", "--", "touch", p.path("led"))
	prog.says(cli.SlowStore)
	time.Sleep(cli.OpenLimit + 2*time.Second) // longer than one attempt of a command that doesn't wait
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", prog.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	opened := 0
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && to == lock.Name() {
			opened++
		}
	}
	if opened != 1 {
		t.Errorf("it has the lock file open %d times, want once", opened)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it leads", func() bool {
		_, err := os.Stat(p.path("led"))
		return err == nil
	})
}
