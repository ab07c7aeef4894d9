package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// Without /proc nothing that CMD leaves behind is found, so no name is taken: the answer names /proc, and not CMD.
func TestWithoutProc(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can take /proc away from a program")
	}
	for _, call := range []string{
		"run job -- echo ran", "elect job -- echo ran", "elect job --on-active 'echo ran'", "shard run space --shards 0-3 -- echo ran",
		"acquire job --hold hold --keep", "lock job --fd 9 9>lock",
	} {
		t.Run(call, func(t *testing.T) {
			p := newPlace(t)
			cmd := p.command()
			cmd.Path, cmd.Args, cmd.Err = "/bin/sh", []string{"sh", "-c", "umount -l /proc && exec leasehold " + call}, nil
			cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
			out, err := cmd.CombinedOutput()
			if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != 125 {
				t.Errorf("%v, want exit code 125", err)
			}
			said := string(out)
			if !strings.Contains(said, "/proc is not mounted here") || !strings.Contains(said, "mount -t proc proc /proc") || strings.Count(said, "\n") != 1 {
				t.Errorf("it said:\n%s", said)
			}
			if strings.Contains(said, "ran\n") {
				t.Error("CMD has run")
			}
		})
	}
}
