package leasehold_test

import (
	"context"
	"fmt"
	"os"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/memory"
)

// Run a job once, however many copies of the program there are.
func Example() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	// Output: writing the report
}

func run() error {
	st := memory.New(memory.Options{}) // or file.Open, etcd.New, open.Parse(url): one that all copies share
	defer st.Close()

	m, err := lease.NewManager(st, lease.Options{})
	if err != nil {
		return err
	}
	defer m.Close()

	// Run waits for the name, calls the function under its lease, and releases it. ctx ends when the lease is lost.
	return m.Run(context.Background(), "nightly-report", func(ctx context.Context, l *lease.Lease) error {
		if err := l.Check(); err != nil { // costs nanoseconds: ask before each step that must not be done twice
			return err
		}
		fmt.Println("writing the report") // send l.Token() with each write, so that a late one is refused: package fence
		return ctx.Err()
	})
}
