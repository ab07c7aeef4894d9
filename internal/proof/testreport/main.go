// Command testreport runs `go test -json` with the arguments it is given and reports what came of
// it: one line a package, the whole output of what failed, the slowest tests, what failed once more
// (of each test up to 200 lines), the reasons for which tests were skipped, and the counts as its
// last line. Its exit code is 0 only when go test's is, at least one test passed, and none failed.
//
// More packages are tested at once than there are processors, since most of their time they wait:
// for a lease to end, for a server. -p says otherwise. On Linux each line also has the processor
// time of the package's tests, with that of the servers that they started; and when testreport is
// interrupted, or killed, nothing that it started lives on.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

func main() {
	if code, ok := wrapped(os.Args); ok {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dieWithGo()
	ok, err := run(ctx, "", os.Args[1:], os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
	}
	if err != nil || !ok {
		stop()
		os.Exit(1)
	}
}

var errInterrupted = errors.New("interrupted: what was not finished is counted as failed")

// run runs go test in dir, writes the report to out, and returns whether all is well.
func run(ctx context.Context, dir string, args []string, out, errs io.Writer) (bool, error) {
	cmd := exec.CommandContext(ctx, "go", append(append([]string{"test", "-json"}, flags(args)...), args...)...)
	cmd.Dir, cmd.Stderr = dir, errs
	endWithThis(cmd)
	stream, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	t := newTally(out)
	readErr := t.read(stream)
	exit := cmd.Wait() // not an error of ours: it is part of the verdict
	t.summary()
	if ctx.Err() != nil {
		readErr = errors.Join(errInterrupted, readErr)
	}
	return exit == nil && t.failed == 0 && t.passed > 0, readErr
}

// flags returns those that go test gets beside args.
func flags(args []string) (more []string) {
	if !given(args, "p") {
		more = append(more, fmt.Sprint("-p=", runtime.NumCPU()+2))
	}
	if exe := wrapper(); exe != "" && !given(args, "exec") {
		more = append(more, "-exec="+exe)
	}
	return more
}

// given reports whether args have that flag.
func given(args []string, name string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		arg, _, _ = strings.Cut(strings.TrimPrefix(arg, "-"), "=")
		return arg == name || arg == "-"+name
	})
}
