// Command embedded runs a job that must not run twice at once on this machine. Start it in two
// terminals with the same file: the second copy waits until the first has finished, or takes over
// at once when the first is killed.
//
//	go run ./examples/embedded /tmp/jobs.db
//
// It needs no server and no configuration. It imports the lease and the engine that keeps it in a
// file; modules.txt lists all that this brings along.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/file"
)

func main() {
	path := filepath.Join(os.TempDir(), "leasehold-embedded.db")
	if len(os.Args) > 1 {
		path = os.Args[1]
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, path, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "embedded:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, path string, out io.Writer) (err error) {
	st, err := file.Open(ctx, path, file.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()

	m, err := lease.NewManager(st, lease.Options{Info: map[string]string{"operation": "nightly report"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()

	// Run waits for the lease, does the job under it, and releases it. The job's context ends when
	// the lease is lost.
	return m.Run(ctx, "nightly-report", func(ctx context.Context, l *lease.Lease) error {
		return report(ctx, l, out)
	})
}

// report is the job. What it writes to should see the token and refuse a lower one than it has
// seen: this process can be stopped between a Check and the write that follows it, for longer than
// its lease lasts.
func report(ctx context.Context, l *lease.Lease, out io.Writer) error {
	const steps = 3
	for step := range steps {
		if err := l.Check(); err != nil { // costs nanoseconds: ask before every step
			return err
		}
		if _, err := fmt.Fprintf(out, "token %d: step %d of %d\n", l.Token(), step+1, steps); err != nil {
			return err
		}
		if err := clock.Sleep(ctx, clock.System(), 200*time.Millisecond); err != nil { // the work
			return err
		}
	}
	return nil
}
