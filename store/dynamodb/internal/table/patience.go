package table

import (
	"sync/atomic"
	"time"
)

// patience is for how long an answer to a read is awaited before the read is made again: soon where
// the server answers soon, since a connection may be dead, and longer where it is slow. A write is
// not cut short like that: who needs it in time sends it once more beside, and a late answer still
// says what came of it. The zero value is ready for use.
type patience struct{ more atomic.Int32 } // how often the first limit was doubled

// firstRead is for how long a read is awaited unless the server was slow.
const firstRead = 2 * time.Second

// limit returns the limit of the next read, most at most.
func (p *patience) limit(most time.Duration) time.Duration {
	return min(firstRead<<p.more.Load(), most)
}

// saw notes that a read took so long, or was cut short then: at its limit.
func (p *patience) saw(limit, took time.Duration) {
	const mostDoubled = 5 // a minute
	switch more := p.more.Load(); {
	case took >= limit && more < mostDoubled:
		p.more.CompareAndSwap(more, more+1)
	case took < limit/4 && more > 0:
		p.more.CompareAndSwap(more, more-1)
	}
}
