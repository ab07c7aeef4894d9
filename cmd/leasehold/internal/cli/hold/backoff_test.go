package hold

import (
	"testing"
	"time"
)

// A candidate whose command ends by itself rests twice as long each time, up to a minute; a long life makes up for that.
func TestRestAfterShortLives(t *testing.T) {
	var rest Backoff
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		if got := rest.Next(time.Duration(i) * time.Second); got != want*time.Second {
			t.Errorf("%d: %v, want %v s", i, got, int(want))
		}
	}
	if got := rest.Next(time.Hour); got != time.Second {
		t.Errorf("after a long life: %v", got)
	}
}
