package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/flake"
	"github.com/leasehold/leasehold/identity"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/file"
)

// minter makes an id every millisecond, and writes each with the reading of the clock as a line of the file that its first argument names. Under
// `leasehold id assign` it has the value that it finds there, up to a SIGTERM, and reports what it has used; else it claims one of the file
// that its second argument names, for its third, with the TTL of its fourth.
func minter() {
	mint := mintAssigned
	if len(os.Args) > 2 {
		mint = mintClaimed
	}
	if err := mint(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func mintClaimed() error {
	ttl, err := time.ParseDuration(os.Args[4])
	if err != nil {
		return err
	}
	ctx := context.Background()
	st, err := file.Open(ctx, os.Args[2], file.Options{})
	if err != nil {
		return err
	}
	m, err := lease.NewManager(st, lease.Options{TTL: ttl})
	if err != nil {
		return err
	}
	s, err := m.OpenSession(ctx)
	if err != nil {
		return err
	}
	h, err := identity.Claim(ctx, s, "machines", identity.Options{Values: identity.Values{Range: "0-9"}, Name: os.Args[3]})
	if err != nil {
		return err
	}
	_, err = mintInto(ctx, h.Number(), h)
	return err
}

func mintAssigned() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	number, err := strconv.ParseUint(os.Getenv(envID), 10, 64)
	if err != nil {
		return err
	}
	used, err := mintInto(ctx, number, fileWindow(os.Getenv(envWindow)))
	if err != nil {
		return err
	}
	return os.WriteFile(os.Getenv(envUsed), fmt.Appendf(nil, "%d\n", used.UnixMilli()), 0o600)
}

// fileWindow is the window as a CMD finds it, in a file of that name.
type fileWindow string

func (w fileWindow) read() (floor, ceiling time.Time) {
	b, err := os.ReadFile(string(w))
	var from, to int64
	if _, failed := fmt.Sscan(string(b), &from, &to); errors.Join(err, failed) != nil {
		fmt.Fprintln(os.Stderr, errors.Join(err, failed))
		os.Exit(1)
	}
	return time.UnixMilli(from), time.UnixMilli(to)
}

func (w fileWindow) Floor() time.Time {
	floor, _ := w.read()
	return floor
}

func (w fileWindow) Ceiling() time.Time {
	_, ceiling := w.read()
	return ceiling
}

func mintInto(ctx context.Context, number uint64, w flake.Window) (used time.Time, err error) {
	g, err := flake.New[flake.ID](flake.Snowflake(), number, w, flake.Options{})
	if err != nil {
		return used, err
	}
	f, err := os.Create(os.Args[1])
	for err == nil && clock.Sleep(ctx, clock.System(), time.Millisecond) == nil {
		id, refused := g.Next()
		if refused == nil {
			_, err = fmt.Fprintf(f, "%d %d\n", clock.System().Now(), id)
		}
	}
	return g.Stop(), err
}
