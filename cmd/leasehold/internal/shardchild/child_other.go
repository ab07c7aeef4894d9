//go:build !unix

package shardchild

import (
	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/supervise"
)

// Child can't be had here.
type Child struct{}

// Start fails, as [supervise.Start] does.
func Start(Command) (*Child, error) {
	_, err := supervise.Start(supervise.Command{})
	return nil, err
}

// Started returns nil.
func (*Child) Started(<-chan struct{}) error { return nil }

// Until does nothing.
func (*Child) Until(clock.Instant) {}

// Drain does nothing.
func (*Child) Drain() {}

// End does nothing.
func (*Child) End() {}

// Wake does nothing.
func (*Child) Wake() {}

// Gone returns nothing.
func (*Child) Gone() <-chan struct{} { return nil }

// Status returns nothing: no command has run.
func (*Child) Status() (s supervise.Status, lost, known bool) {
	return supervise.Status{}, false, false
}
