package servers

import (
	"math"
	"math/rand/v2"
	"time"
)

// Latency returns how long a round trip takes that begins so long after the first one could. It is
// called by one goroutine at a time, which owns rng.
type Latency func(since time.Duration, rng *rand.Rand) time.Duration

// Constant is a network whose round trips all take as long.
func Constant(d time.Duration) Latency {
	return func(time.Duration, *rand.Rand) time.Duration { return d }
}

// Rising is a network whose round trips take longer and longer: top after that time, which must be
// above 0, and from then on.
func Rising(top, within time.Duration) Latency {
	return func(since time.Duration, _ *rand.Rand) time.Duration {
		return time.Duration(min(float64(since)/float64(within), 1) * float64(top))
	}
}

// Jumping is a network that is fast and slow by turns, each for that time, which must be above 0.
func Jumping(fast, slow, each time.Duration) Latency {
	return func(since time.Duration, _ *rand.Rand) time.Duration {
		if since/each%2 == 0 {
			return fast
		}
		return slow
	}
}

// HeavyTail is a network whose round trips take p50 in the middle, and longer than p99 one time in
// 100: they are distributed log-normally.
func HeavyTail(p50, p99 time.Duration) Latency {
	const z99 = 2.326 // the standard normal distribution's 99th percentile
	sigma := math.Log(float64(p99)/float64(p50)) / z99
	return func(_ time.Duration, rng *rand.Rand) time.Duration {
		return time.Duration(float64(p50) * math.Exp(rng.NormFloat64()*sigma))
	}
}
