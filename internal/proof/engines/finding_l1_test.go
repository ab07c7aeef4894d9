package engines

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
)

// slowFor is for how long each engine is slow.
func slowFor(t testing.TB) time.Duration {
	t.Helper()
	text := os.Getenv("LEASEHOLD_SLOW_FOR")
	if text == "" {
		return 24 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("LEASEHOLD_SLOW_FOR=%q: want a duration, such as 3m: %v", text, err)
	}
	return d
}

// A real server behind a network that has each answer come after 40 % of what the holder counts on loses it no lease. The network has become
// slow while it was held, since on most engines a connection takes several round trips to open. So the holder has one lease: others of its
// process would need connections of their own.
//
// All engines run at once, whatever -parallel says: they do nothing but wait.
//
//	LEASEHOLD_SLOW_FOR=3m go test ./internal/proof/engines -run TestFinding_L1_ASlowNetwork -v
func TestFinding_L1_ASlowNetworkEndsNoLease(t *testing.T) {
	slow := slowFor(t)
	var all sync.WaitGroup
	defer all.Wait()
	for _, k := range kinds {
		all.Go(func() {
			t.Run(k.name, func(t *testing.T) {
				srv := k.start(t)
				inst := k.prepare(t, srv)
				stalltest.Run(t, func(t testing.TB) {
					proxy := servers.Proxy(t, srv.Addr)
					rideOut(t, inst.open(t, proxy.Addr), proxy, slow)
				})
			})
		})
	}
}

// rideOut holds a lease while the network is slow.
func rideOut(t testing.TB, st store.Store, proxy *servers.Network, slow time.Duration) {
	const length = 10 * time.Second
	const latency = length * 8 / 10 * 40 / 100
	lost := make(chan error, 1)
	doubtful := make(chan struct{}, 1000)
	m, err := lease.NewManager(st, lease.Options{TTL: length, OnEvent: func(e lease.Event) {
		switch e.State {
		case lease.StateLost:
			lost <- fmt.Errorf("%s is lost: %w", e.Name, e.Err)
		case lease.StateJeopardy:
			doubtful <- struct{}{}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		proxy.Heal()
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	l, err := m.Acquire(t.Context(), "slow")
	if err != nil {
		t.Fatal(err)
	}
	<-time.After(length / 2) // renewed once
	proxy.Delay(latency / 2)
	end := time.After(slow)
	late, least := 0, length
	for over := false; !over; {
		select {
		case err := <-lost:
			t.Fatal(err)
		case <-doubtful:
			late++
		case <-time.After(20 * time.Millisecond):
			least = min(least, l.Left())
		case <-end:
			over = true
		}
	}
	if err := l.Check(); err != nil {
		t.Error(err)
	}
	if late == 0 {
		t.Error("no renewal was late: the network was not slow")
	}
	t.Logf("%v of latency for %v at a TTL of %v: one term, %d late renewals, %v were left at least", latency, slow, length, late, least.Round(time.Millisecond))
}
