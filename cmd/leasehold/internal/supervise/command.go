package supervise

import (
	"os"

	"github.com/leasehold/leasehold/clock"
)

// Command is what is to be run. Standard input, output and error are passed on, unless it is
// detached.
type Command struct {
	Path  string   // of the file
	Args  []string // with the name under which it is called first
	Env   []string
	Clock clock.Clock

	// Detached is for a command that is a part of what this program does: it has no standard input,
	// leaves the terminal alone, and is told to end by [Work.Terminate] only: what interrupts this
	// program is not passed on.
	Detached bool
	// OwnHangup has SIGHUP be for this program, which reads its files again, and not be passed on.
	OwnHangup bool

	// Final is for a command after whose end the program only gives back what it holds and ends.
	// The signals that were passed on, and would end it in between, then have no effect.
	Final bool

	// Contain is how all that the command starts is found and ended: auto by default.
	Contain Contain

	// Contained, if set, is called once with how that is done, and why no better: nil if nothing
	// is.
	Contained func(how Contain, why error)

	// Guards, if set, is called when a guard process has ended, with what was done about that.
	Guards func(error)

	// Proof is the open files that prove to the store that this process lives: see
	// [driver.Witness]. The guards keep them open until all that the command started is gone: so
	// that after the death of this process nobody else has the lease before.
	Proof []*os.File

	// Suspended, if set, is called before the supervisor stops itself because the user has stopped
	// the command from the terminal. The lease is not renewed until the user continues the job.
	Suspended func()
}

// Status is how a command ended.
type Status struct {
	Code   int
	Signal os.Signal // that ended it; nil if it ended by itself
}
