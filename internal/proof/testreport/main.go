// Command testreport runs `go test -json` with the arguments it is given and reports what came of
// it: one line a package, the whole output of what failed, every skipped test with its reason, the
// slowest tests, what failed once more (of each test up to 200 lines), and the counts as its last
// line. Its exit code is 0 only when go test's is, at least one test passed, and none failed.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ok, err := run(ctx, "", os.Args[1:], os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
	}
	if err != nil || !ok {
		stop()
		os.Exit(1)
	}
}

// run runs go test in dir, writes the report to out, and returns whether all is well.
func run(ctx context.Context, dir string, args []string, out, errs io.Writer) (bool, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Dir, cmd.Stderr = dir, errs
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
	return exit == nil && t.failed == 0 && t.passed > 0, readErr
}
