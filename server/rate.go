package server

import (
	"context"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/api"
)

// bucket is what may be done yet, as of a time. It fills at a rate, up to a bound.
type bucket struct {
	left float64 // below 0 for what was done in advance
	at   clock.Instant
}

// refill returns the bucket as it is now. One that was never used is full.
func (b bucket) refill(now clock.Instant, perSecond, burst float64) bucket {
	if b == (bucket{}) {
		return bucket{burst, now}
	}
	return bucket{math.Min(burst, b.left+now.Sub(b.at).Seconds()*perSecond), now}
}

// rates bounds how many requests of each caller are served a second.
type rates struct {
	clk       clock.Clock
	perSecond float64 // 0 for any number
	burst     float64

	mu sync.Mutex
	of map[string]bucket
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
	b := l.of[who].refill(now, l.perSecond, l.burst)
	if b.left < 1 {
		after := seconds((1 - b.left) / l.perSecond)
		p := api.NewProblem(api.CodeTooMany, "%s sends more than %g requests a second: come again in %v", who, l.perSecond, after.Round(time.Millisecond))
		p.Field, p.ExpiresIn = "rate", (*api.Seconds)(&after)
		return p
	}
	if len(l.of) >= manyBuckets {
		l.forget(now)
	}
	b.left--
	l.of[who] = b
	return nil
}

// forget drops the buckets that are full. l.mu is held.
func (l *rates) forget(now clock.Instant) {
	for who, b := range l.of {
		if b.refill(now, l.perSecond, l.burst).left >= l.burst {
			delete(l.of, who)
		}
	}
}

// pace bounds how many bytes are sent a second. Who takes some waits until they may be sent.
type pace struct {
	clk       clock.Clock
	perSecond float64

	mu sync.Mutex
	b  bucket
}

// paceBurst is how much of a second's share may be used at once.
const paceBurst = 10 * time.Millisecond

func newPace(clk clock.Clock, perSecond int) *pace {
	return &pace{clk: clk, perSecond: float64(perSecond)}
}

// take blocks until n more may be sent, or until ctx is done, and returns its cause then.
func (p *pace) take(ctx context.Context, n int) error {
	p.mu.Lock()
	p.b = p.b.refill(p.clk.Now(), p.perSecond, p.perSecond*paceBurst.Seconds())
	wait := seconds(-p.b.left / p.perSecond)
	p.b.left -= float64(n)
	p.mu.Unlock()
	if wait <= 0 {
		return context.Cause(ctx)
	}
	return clock.Sleep(ctx, p.clk, wait)
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// retryAfter is the header of that name: whole seconds, 1 at least.
func retryAfter(p *api.Problem) string {
	if p.Code != api.CodeTooMany || p.ExpiresIn == nil {
		return "1"
	}
	return strconv.Itoa(max(1, int(math.Ceil(time.Duration(*p.ExpiresIn).Seconds()))))
}
