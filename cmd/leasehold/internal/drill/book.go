package drill

import (
	"context"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/compat/admiral"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
)

// reading is the row of the lease as it was read once.
type reading struct {
	sent, answered clock.Instant
	pod            string // of the holder; "" when the row is free
	token          fence.Token
	// By an operator, or not yet free after that: an instance may not have noticed yet.
	held    bool
	settled bool // by an operator, and no instance is active for certain
	handed  bool // the successor has not written yet
}

// resumedOwner is the owner of a row whose hold is over, and whose former holder may be active yet.
const resumedOwner = "RESUMED"

func readingOf(op admiral.Operator, rec store.Record) reading {
	r := reading{token: rec.Token, handed: rec.Intervention == store.InterventionHandedOver}
	switch rec.Owner {
	case admiral.SkipOwner:
		r.held, r.settled = true, op.Settled(rec)
	case resumedOwner:
		r.held = true
	default:
		r.pod = holder(rec)
	}
	return r
}

// holder is the pod of who holds the row, "" if nobody does. Admiral itself writes its pod as the
// owner.
func holder(rec store.Record) string {
	if pod, _ := admiral.HolderOf(rec); rec.Owner != "" && pod != "" {
		return pod
	}
	return rec.Owner
}

// book is all that was seen, in the order in which it was answered. Its methods may be called from
// any goroutine.
type book struct {
	mu       sync.Mutex
	samples  []sample
	readings []reading
}

func (b *book) answer(s sample) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.samples = append(b.samples, s)
}

func (b *book) read(r reading) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.readings = append(b.readings, r)
}

// last returns the latest reading.
func (b *book) last() (reading, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.readings) == 0 {
		return reading{}, false
	}
	return b.readings[len(b.readings)-1], true
}

// accepted returns the first write that pod accepted and that was sent at from or later.
func (b *book) accepted(pod string, from clock.Instant) (sample, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.samples {
		if s.pod == pod && s.ok && s.sent >= from {
			return s, true
		}
	}
	return sample{}, false
}

// outage returns the longest time between from and to in which nobody served: from the moment at
// which the last accepted write was sent to the answer of the next one. With served, only samples
// of the service count; else those of all sides do.
func (b *book) outage(from, to clock.Instant, served bool) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	longest, last := time.Duration(0), from
	for _, s := range b.samples {
		if !s.ok || served != (s.pod == service) || s.answered < from || s.answered > to {
			continue
		}
		longest = max(longest, s.answered.Sub(last))
		last = max(last, s.sent)
	}
	return max(longest, to.Sub(last))
}

// watch reads the row again and again, until ctx ends, and once more.
func (d *Drill) watch(ctx context.Context, b *book) {
	for ctx.Err() == nil {
		_ = d.readRow(ctx, b)
		_ = clock.Sleep(ctx, d.Clock, max(d.Every, d.rowEvery()))
	}
}

// rowEvery is the pause between two reads of the row: a table is paid for by the read.
func (d *Drill) rowEvery() time.Duration {
	if d.Looks > 0 {
		return time.Second
	}
	return 0
}

func (d *Drill) readRow(ctx context.Context, b *book) error {
	limited, cancel := clock.WithTimeout(ctx, d.Clock, max(d.Operator.Config.WaitTime, time.Second))
	defer cancel()
	sent := d.Clock.Now()
	rec, err := d.Operator.Record(limited)
	if err != nil {
		return err
	}
	r := readingOf(d.Operator, rec)
	r.sent, r.answered = sent, d.Clock.Now()
	b.read(r)
	return nil
}
