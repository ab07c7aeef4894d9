package ids

import "time"

// plain is Snowflake as Twitter wrote it, for comparison: its worker number is leased, its time is the clock's, and a clock that is behind
// the last id's time is refused. What it knows of that is gone when the process is.
type plain struct {
	worker uint64
	now    func() time.Time
	last   int64 // ms of its epoch
	seq    uint64
}

const (
	plainEpoch = 1288834974657
	plainBits  = 12
)

// next returns the number of the next id; ok is false while the clock is behind.
func (p *plain) next() (n number, ok bool) {
	now := p.now()
	ms := now.UnixMilli() - plainEpoch
	switch {
	case ms < p.last:
		return 0, false
	case ms > p.last:
		p.seq = 0
	default:
		if p.seq = (p.seq + 1) % (1 << plainBits); p.seq == 0 { // none is left in this millisecond
			time.Sleep(now.Truncate(time.Millisecond).Add(time.Millisecond).Sub(now))
			return p.next()
		}
	}
	p.last = ms
	return number(uint64(ms)<<plainBits | p.seq), true
}
