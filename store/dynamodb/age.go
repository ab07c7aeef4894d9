package dynamodb

import (
	"math"
	"time"

	"github.com/leasehold/leasehold/store/dynamodb/internal/table"
)

// stamp returns the time that a row is written with: one that the server's clock had not passed
// when the write was sent. It comes from the latest answer of the server, and what has passed since
// on this machine's clock that no one sets, so that no wall clock but the server's is in it. It is
// "" before the first answer.
func (s *Store) stamp() string {
	at, ok := s.table.Late()
	if !ok {
		return ""
	}
	// Which truncates.
	return at.UTC().Add(time.Millisecond - 1).Format("2006-01-02T15:04:05.000Z07:00")
}

// age returns how long ago at least the row's version was sent to the server: what the server's
// clock said when it answered, truncated to a second, less the stamp, less the bound on that clock.
// It is 0 where that isn't known.
func (s *Store) age(read table.Read) time.Duration {
	if s.opts.ServerClock <= 0 || read.Date.IsZero() {
		return 0
	}
	written, err := time.Parse(time.RFC3339Nano, textOf(read.Row, attrWritten))
	if err != nil { // none
		return 0
	}
	age := read.Date.Sub(written)
	if age == math.MaxInt64 { // a stamp that is no stamp
		return 0
	}
	return max(age-s.opts.ServerClock, 0)
}
