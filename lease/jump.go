package lease

import (
	"time"

	"github.com/leasehold/leasehold/internal/protocol"
)

// No clock of a virtual machine counts the time for which its host paused it, or for which it was a
// snapshot. Afterwards all that it can see is that somebody, its time daemon or its host's agent,
// sets the wall clock forward. So a jump of the wall clock against the clock that decides is a
// reason to ask the store: the next renewal comes at once, and meets the version of the holder that
// has taken the name. It ends nothing by itself, for wall clocks are also set because they were
// wrong, and it lengthens nothing.
const (
	jumpLooks = 12 // so many times a TTL the two clocks are compared
	// A jump is more than this share of a TTL: less is within the margin, and more than clocks are
	// slewed by between two looks.
	jumpShare = 10
)

// jumps compares two clocks. Its zero value has not seen them yet.
type jumps struct {
	apart time.Duration
	known bool
}

// ahead reports whether the wall clock has run ahead by more than the limit since the last look.
func (j *jumps) ahead(env protocol.Env, limit time.Duration) bool {
	before, known := j.apart, j.known
	j.apart, j.known = time.Duration(env.Wall.UnixNano()-int64(env.Now)), true
	return known && j.apart-before > limit
}
