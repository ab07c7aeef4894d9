package supervise

import (
	"os"

	"github.com/leasehold/leasehold/clock"
)

// Command is what is to be run. Standard input, output and error are passed on.
type Command struct {
	Path  string   // of the file
	Args  []string // with the name under which it is called first
	Env   []string
	Clock clock.Clock

	// Suspended, if set, is called before the supervisor stops itself because the user has stopped the command from the
	// terminal. The lease is not renewed until the user continues the job.
	Suspended func()
}

// Status is how a command ended.
type Status struct {
	Code   int
	Signal os.Signal // that ended it; nil if it ended by itself
}
