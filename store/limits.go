package store

import (
	"math"
	"time"
)

// Limits that every engine keeps.
const (
	MaxKey    = 255                   // bytes of a key, an owner, a session key, a nonce or a note
	MaxRecord = 64 << 10              // bytes of a record, in an engine that stores bytes
	MaxPast   = 8                     // ended terms that a record remembers
	MaxTTL    = 366 * 24 * time.Hour  // a longer hold is a setting, not a lease
	MinTTL    = 10 * time.Millisecond // a shorter one can't be renewed in time
)

// AgeGone is the [Record.Age] of a version whose writer is known to be gone.
const AgeGone time.Duration = math.MaxInt64
