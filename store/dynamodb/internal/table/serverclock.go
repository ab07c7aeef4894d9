package table

import (
	"time"

	"github.com/leasehold/leasehold/clock"
)

// heard is what the latest answer said about the server's clock.
type heard struct {
	date time.Time     // truncated to the second; zero before the first answer
	sent clock.Instant // when the request was sent
	came clock.Instant // when the answer was there
}

// listen keeps the server's date.
func (t *Table) listen(date time.Time, sent clock.Instant) {
	if date.IsZero() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.heard.date.IsZero() || sent >= t.heard.sent {
		t.heard = heard{date, sent, t.opts.Clock.Now()}
	}
}

// Late returns a time that the clock of the server which answered last has not passed yet, unless
// it was set since, and false before the first answer. The date was truncated to a second, and read
// after the request was sent; this machine's clock may run slow, the server's fast, by a quarter
// between them.
func (t *Table) Late() (time.Time, bool) {
	t.mu.Lock()
	h := t.heard
	t.mu.Unlock()
	if h.date.IsZero() {
		return time.Time{}, false
	}
	since := t.opts.Clock.Now().Sub(h.sent)
	return h.date.Add(time.Second + since + since/4), true
}

// Apart returns how far this machine's wall clock and the server's are apart at least, by the
// latest answer, and false before the first one. The server tells whole seconds, so less than one
// is not seen. It does no I/O.
func (t *Table) Apart() (time.Duration, bool) {
	t.mu.Lock()
	h := t.heard
	t.mu.Unlock()
	if h.date.IsZero() {
		return 0, false
	}
	wall, now := t.opts.Clock.Wall(), t.opts.Clock.Now()
	// The server's clock showed the date, for less than a second, between the request and its
	// answer.
	early, late := h.date.Add(now.Sub(h.came)), h.date.Add(time.Second+now.Sub(h.sent))
	return max(early.Sub(wall), wall.Sub(late), 0), true
}
