package hold

import "time"

// Backoff is how long to rest after a command has ended by itself.
type Backoff struct{ last time.Duration }

const (
	leastRest = time.Second
	mostRest  = time.Minute
)

// Next returns how long to rest after a command that lived for that time: twice as long as the
// last time, unless it was a long life.
func (b *Backoff) Next(lived time.Duration) time.Duration {
	b.last = min(max(2*b.last, leastRest), mostRest)
	if lived >= mostRest {
		b.last = leastRest
	}
	return b.last
}
