package availability

import (
	"context"
	"math/rand/v2"
	"os"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/internal/proof/servers"
)

// scenario is what happens to a cell. run returns when ctx is done.
type scenario struct {
	name string
	run  func(ctx context.Context, l *cell)
}

// scenarios are those of a run that lasts so long.
func scenarios(lasts time.Duration) []scenario {
	return []scenario{
		{"constant latency, 3 s", latency(servers.Constant(3 * time.Second))},
		{"rising latency, 0 to 5.9 s", latency(servers.Rising(5900*time.Millisecond, lasts))},
		{"jumping latency, 20 ms and 4.9 s by turns, 30 s each", latency(servers.Jumping(20*time.Millisecond, 4900*time.Millisecond, 30*time.Second))},
		{"heavy tail, p50 200 ms, p99 5 s", latency(servers.HeavyTail(200*time.Millisecond, 5*time.Second))},
		{"an outage of 5 s each half minute", outages(30*time.Second, 5*time.Second)},
		{"the leader is stopped in order, each 20 s", signals(20*time.Second, syscall.SIGTERM)},
		{"the leader is killed (SIGKILL), each 60 s", signals(time.Minute, syscall.SIGKILL)},
	}
}

// redrawn is how often latency changes.
const redrawn = 100 * time.Millisecond

// latency delays what is sent, half of it in each direction. All cells get the same latencies.
func latency(of servers.Latency) func(ctx context.Context, l *cell) {
	return func(ctx context.Context, l *cell) {
		rng, began := rand.New(rand.NewPCG(1, 1)), time.Now()
		l.network.Delay(of(0, rng) / 2)
		each(ctx, redrawn, func() { l.network.Delay(of(time.Since(began), rng) / 2) })
	}
}

// outages cuts the network for a while: connections hang, and what was sent meanwhile arrives later.
func outages(every, lasts time.Duration) func(ctx context.Context, l *cell) {
	return func(ctx context.Context, l *cell) {
		each(ctx, every, func() {
			l.network.Cut()
			wait(ctx, lasts)
			l.network.Heal()
		})
	}
}

// signals sends who leads a signal. When nobody does, it waits for the next time.
func signals(every time.Duration, sig os.Signal) func(ctx context.Context, l *cell) {
	return func(ctx context.Context, l *cell) {
		each(ctx, every, func() {
			if p := l.leader(); p != nil {
				_ = p.Signal(sig) // it may have ended meanwhile
			}
		})
	}
}

// each calls f for the first time in half of that time, and then at that interval, until ctx is done.
func each(ctx context.Context, every time.Duration, f func()) {
	wait(ctx, every/2)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for ctx.Err() == nil {
		f()
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
