//go:build unix

// Command member is a process of what `leasehold run` supervises in a soak. For as long as it runs
// it says so: every 10 ms it appends a line with the token of its term, the reading of the clock,
// its letter and the holder to the file of its name, in the folder LEASEHOLD_SOAK_TICKS. It is deaf
// to every signal that can be ignored.
//
//	member LETTER [DURATION]
//
// With a duration it ends by itself, at any time up to that.
package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/clock"
)

const tick = 10 * time.Millisecond

func main() {
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM)
	if err := live(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "soak member:", err)
		os.Exit(1)
	}
}

func live(args []string) error {
	clk := clock.System()
	end := clock.NoDeadline
	if len(args) > 1 {
		most, err := time.ParseDuration(args[1])
		if err != nil {
			return err
		}
		end = clk.Now().Add(rand.N(most))
	}
	f, err := os.OpenFile(filepath.Join(os.Getenv("LEASEHOLD_SOAK_TICKS"), os.Getenv("LEASEHOLD_NAME")), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	for now := clk.Now(); now < end; now = clk.Now() {
		if _, err := fmt.Fprintf(f, "%s %d %s %s\n", os.Getenv("LEASEHOLD_TOKEN"), now, args[0], os.Getenv("LEASEHOLD_HOLDER")); err != nil {
			return err
		}
		if err := clock.Sleep(context.Background(), clk, tick); err != nil {
			return err
		}
	}
	return f.Close()
}
