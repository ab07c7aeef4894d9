package shardcall

import (
	"testing"
	"time"
)

// Pauses grow while one worker refuses, up to a quarter of a second; the next worker is asked again soon.
func TestPausesAreOfOneWorker(t *testing.T) {
	c := &Call{}
	for _, want := range []time.Duration{2, 4, 8, 16, 32, 64, 128, 250, 250} {
		if got := c.pause("a"); got != want*time.Millisecond {
			t.Errorf("a pause of %v, want %d ms", got, want)
		}
	}
	for _, want := range []time.Duration{2, 4} {
		if got := c.pause("b"); got != want*time.Millisecond {
			t.Errorf("a pause of %v for the next worker, want %d ms", got, want)
		}
	}
	if got := c.pause("a"); got != pauseMin {
		t.Errorf("a pause of %v for the first worker, asked anew; want %v", got, pauseMin)
	}
}
