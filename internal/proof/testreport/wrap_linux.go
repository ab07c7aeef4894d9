package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// wrapperName is the first argument of a testreport that go test runs in place of a test program,
// whose arguments follow.
const wrapperName = "__test"

// init keeps main on the thread that the process began with, which lives as long as the process:
// Linux tells a child of the end of the thread that started it.
func init() { runtime.LockOSThread() }

// wrapper is what go test's -exec runs.
func wrapper() string {
	exe, err := os.Executable()
	if err != nil || strings.ContainsAny(exe, `'"`) {
		return ""
	}
	return "'" + exe + "' " + wrapperName
}

// wrapped runs a test program when the arguments say so, and returns its exit code.
func wrapped(args []string) (code int, ok bool) {
	if len(args) < 3 || args[1] != wrapperName {
		return 0, false
	}
	dieWithParent(syscall.SIGKILL)
	// The terminal sends these to the tests, too. What go test sends when they take too long, it
	// sends to this process alone.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGQUIT, syscall.SIGTERM)
	cmd := exec.Command(args[2], args[3:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	endWithThis(cmd)
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		return 2, true
	}
	go func() {
		for sig := range signals {
			_ = cmd.Process.Signal(sig) // it may have ended
		}
	}()
	_ = cmd.Wait() // the state says it
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &used); err == nil {
		took := time.Duration(used.Utime.Nano() + used.Stime.Nano())
		fmt.Printf("%s%v\n", cpuMark, took.Round(time.Millisecond))
	}
	if status, isWait := cmd.ProcessState.Sys().(syscall.WaitStatus); isWait && status.Signaled() {
		fmt.Println("the test program was ended by a signal: " + status.Signal().String())
		return 128 + int(status.Signal()), true
	}
	return cmd.ProcessState.ExitCode(), true
}

// dieWithGo has an interrupt follow when the go command that runs this program is killed. Another
// parent may well end before: a shell whose job this is, in the background.
func dieWithGo() {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", os.Getppid()))
	if err == nil && strings.TrimSpace(string(name)) == "go" {
		dieWithParent(syscall.SIGTERM)
	}
}

// dieWithParent has this process get a signal when the one that started it ends.
func dieWithParent(sig syscall.Signal) {
	const prSetDeathSignal = 1
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, prSetDeathSignal, uintptr(sig), 0)
}

// endWithThis has a command be killed when this process ends.
func endWithThis(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
