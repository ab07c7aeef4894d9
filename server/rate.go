package server

import (
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/wire"
)

// rates bounds how many requests of each caller are served a second: a bucket of them, which fills again.
type rates struct {
	clk       clock.Clock
	perSecond float64 // 0 for any number
	burst     float64

	mu sync.Mutex
	of map[string]bucket
}

// bucket is what a caller had left at a time.
type bucket struct {
	left float64
	at   clock.Instant
}

// manyBuckets is from how many on those that are full again are forgotten.
const manyBuckets = 1024

func newRates(clk clock.Clock, perSecond float64) *rates {
	return &rates{clk: clk, perSecond: perSecond, burst: math.Max(2*perSecond, 1), of: map[string]bucket{}}
}

// take takes one request of who, or returns a problem that says when to come again.
func (l *rates) take(who string) error {
	if l.perSecond == 0 {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clk.Now()
	left := l.left(l.of[who], now)
	if left < 1 {
		after := time.Duration((1 - left) / l.perSecond * float64(time.Second))
		p := wire.NewProblem(wire.CodeTooMany, "%s sends more than %g requests a second: come again in %v", who, l.perSecond, after.Round(time.Millisecond))
		p.Field, p.ExpiresIn = "rate", (*wire.Seconds)(&after)
		return p
	}
	if len(l.of) >= manyBuckets {
		l.forget(now)
	}
	l.of[who] = bucket{left - 1, now}
	return nil
}

// left is what there is in a bucket.
func (l *rates) left(b bucket, now clock.Instant) float64 {
	if b == (bucket{}) {
		return l.burst
	}
	return math.Min(l.burst, b.left+now.Sub(b.at).Seconds()*l.perSecond)
}

// forget drops the buckets that are full. l.mu is held.
func (l *rates) forget(now clock.Instant) {
	for who, b := range l.of {
		if l.left(b, now) >= l.burst {
			delete(l.of, who)
		}
	}
}

// retryAfter is the header of that name: whole seconds, 1 at least.
func retryAfter(p *wire.Problem) string {
	if p.Code != wire.CodeTooMany || p.ExpiresIn == nil {
		return "1"
	}
	return strconv.Itoa(max(1, int(math.Ceil(time.Duration(*p.ExpiresIn).Seconds()))))
}
