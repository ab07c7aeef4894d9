package servers

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestLatencies(t *testing.T) {
	for name, c := range map[string]struct {
		of    Latency
		since time.Duration
		want  time.Duration
	}{
		"constant":              {Constant(3 * time.Second), time.Hour, 3 * time.Second},
		"rising, at first":      {Rising(4*time.Second, time.Minute), 0, 0},
		"rising, half way":      {Rising(4*time.Second, time.Minute), 30 * time.Second, 2 * time.Second},
		"rising, later":         {Rising(4*time.Second, time.Minute), time.Hour, 4 * time.Second},
		"jumping, at first":     {Jumping(time.Millisecond, time.Second, time.Minute), 59 * time.Second, time.Millisecond},
		"jumping, then":         {Jumping(time.Millisecond, time.Second, time.Minute), time.Minute, time.Second},
		"jumping, a third time": {Jumping(time.Millisecond, time.Second, time.Minute), 2 * time.Minute, time.Millisecond},
	} {
		if got := c.of(c.since, nil); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestHeavyTailHasItsPercentiles(t *testing.T) {
	of, rng := HeavyTail(200*time.Millisecond, 5*time.Second), rand.New(rand.NewPCG(1, 1))
	all := make([]time.Duration, 100_000)
	for i := range all {
		all[i] = of(0, rng)
	}
	slices.Sort(all)
	if p50 := all[len(all)/2]; p50 < 190*time.Millisecond || p50 > 210*time.Millisecond {
		t.Errorf("p50 is %v", p50)
	}
	if p99 := all[len(all)*99/100]; p99 < 4500*time.Millisecond || p99 > 5500*time.Millisecond {
		t.Errorf("p99 is %v", p99)
	}
}
