package server

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
)

// A crowd shares what may be sent a second, each a piece in turn; who has gone meanwhile doesn't wait.
func TestFinding_V1_WatchersShareABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const crowd, piece, bound = 100, 64 << 10, 1 << 20
		clk := clocktest.New(0)
		p := newPace(clk, bound)
		var all sync.WaitGroup
		begun := time.Now()
		for range crowd {
			all.Go(func() {
				if err := p.take(t.Context(), piece); err != nil {
					t.Error(err)
				}
			})
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.take(gone, piece); err == nil || time.Since(begun) != 0 {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		all.Wait()
		if took, least := time.Since(begun), crowd*piece*time.Second/bound-paceBurst-100*time.Millisecond; took < least || took > least+300*time.Millisecond {
			t.Errorf("%d pieces took %v, want about %v", crowd, took, least)
		}
	})
}
