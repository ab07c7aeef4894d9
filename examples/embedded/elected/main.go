// Command elected is a program of which several copies run and one leads: a controller, a
// scheduler. Start it in two terminals with the same file: the second copy leads when the first one
// ends, and at once when the first one is killed.
//
//	go run ./examples/embedded/elected /tmp/leader.db
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/file"
)

func main() {
	path := filepath.Join(os.TempDir(), "leasehold-elected.db")
	if len(os.Args) > 1 {
		path = os.Args[1]
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, path, os.Stdout)
	ended := ctx.Err() != nil
	stop()
	if err != nil && !ended { // Run returns why ctx is done: here, that was asked for
		fmt.Fprintln(os.Stderr, "elected:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, path string, out io.Writer) (err error) {
	st, err := file.Open(ctx, path, file.Options{}) // or etcd.New(client, etcd.Options{}), …
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()

	m, err := lease.NewManager(st, lease.Options{TTL: 15 * time.Second})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close()) }()

	// Run stands for election, leads, and stands again after a loss, until ctx is done.
	return election.Run(ctx, m, "scheduler", election.Callbacks{
		OnStartedLeading: func(ctx context.Context, term election.Term) { lead(ctx, term, out) },
		OnNewLeader:      func(l election.Leader) { _, _ = fmt.Fprintf(out, "%s leads\n", l.Owner) },
		// The term is about to end, and lead has not returned.
		OnStopTimeout: func(election.Term, error) { os.Exit(1) },
	}, election.Options{})
}

// lead does the leader's work until ctx is done, which is before the term ends. What it writes to
// should see the token and refuse a lower one.
func lead(ctx context.Context, term election.Term, out io.Writer) {
	for ctx.Err() == nil && term.Check() == nil {
		_, _ = fmt.Fprintf(out, "working under token %d\n", term.Token)
		if err := clock.Sleep(ctx, clock.System(), 200*time.Millisecond); err != nil { // the work
			return
		}
	}
}
