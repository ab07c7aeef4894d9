//go:build linux

package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/leasehold/leasehold/clock"
)

// witness sums up by how much the machine is late: at waking who sleeps, and at writing to the disk
// of the store. A renewal or a claim waits for both.
type witness struct {
	clk  clock.Clock
	f    *os.File
	late time.Duration
}

func newWitness(clk clock.Clock, dir string) (*witness, error) {
	f, err := os.CreateTemp(dir, "witness-")
	return &witness{clk: clk, f: f}, err
}

// look sleeps for a moment and writes a byte. An end of ctx is no error.
func (w *witness) look(ctx context.Context) error {
	const nap = 10 * time.Millisecond
	before := w.clk.Now()
	if clock.Sleep(ctx, w.clk, nap) != nil {
		return nil
	}
	_, err := w.f.WriteAt([]byte{0}, 0)
	err = errors.Join(err, w.f.Sync())
	w.late += max(w.clk.Now().Sub(before)-nap, 0)
	return err
}

func (w *witness) close() error { return errors.Join(w.f.Close(), os.Remove(w.f.Name())) }
