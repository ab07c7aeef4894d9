package shardchild

import (
	"os"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/cmd/leasehold/internal/supervise"
)

// Command is what is to be run for a slice. It has no standard input.
type Command struct {
	Path    string // of the file
	Args    []string
	Env     []string
	Contain supervise.Contain
	Timing  supervise.Timing
	Until   clock.Instant // of the validity, by [clock.System]
	Proof   []*os.File    // see [supervise.Command]

	// Tell is called with what is done to the command, and Guards when a guard process has ended.
	// They must not block.
	Tell   func(supervise.Notice)
	Guards func(error)
}
