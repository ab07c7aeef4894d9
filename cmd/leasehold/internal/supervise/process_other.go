//go:build !unix

package supervise

import (
	"errors"

	"github.com/leasehold/leasehold/clock"
)

// Process can't be had here.
type Process struct{}

// Start fails: without process groups and their signals a command could outlive its lease.
func Start(Command) (*Process, error) {
	return nil, errors.New("commands can't be run under a lease on this system: there is no way to end all that they start in time")
}

// Catch does nothing: no command runs.
func Catch() {}

// Terminate implements [Work].
func (*Process) Terminate() {}

// Kill implements [Work].
func (*Process) Kill() {}

// KillBy implements [Work].
func (*Process) KillBy(clock.Instant) {}

// Exited implements [Work].
func (*Process) Exited() <-chan struct{} { return nil }

// Gone implements [Work].
func (*Process) Gone() <-chan struct{} { return nil }

// Status returns nothing: no command has run.
func (*Process) Status() Status { return Status{} }

// Unguarded implements [Work].
func (*Process) Unguarded() <-chan struct{} { return nil }

// Containment fails as Start does.
func Containment(Contain) (Contain, error, error) {
	_, err := Start(Command{})
	return "", nil, err
}
