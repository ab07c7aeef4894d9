package engines

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

// electorTTL is client-go's usual LeaseDuration, with a RenewDeadline of 10 s and a RetryPeriod of 2 s.
const electorTTL = 15 * time.Second

var shapes = []struct {
	name string
	of   servers.Latency
}{
	{"constant, 4 s", servers.Constant(4 * time.Second)},
	{"constant, 5.9 s", servers.Constant(5900 * time.Millisecond)},
	{"rising, 0 to 5.9 s in 30 min", servers.Rising(5900*time.Millisecond, 30*time.Minute)},
	{"jumping, 20 ms and 4.9 s, each for a minute", servers.Jumping(20*time.Millisecond, 4900*time.Millisecond, time.Minute)},
	{"heavy tail, p50 200 ms, p99 5 s", servers.HeavyTail(200*time.Millisecond, 5*time.Second)},
	{"heavier tail, p50 1 s, p99 5 s, one of 500 never", func(since time.Duration, rng *rand.Rand) time.Duration {
		if rng.IntN(500) == 0 {
			return time.Hour
		}
		return servers.HeavyTail(time.Second, 5*time.Second)(since, rng)
	}},
}

// A lease is lost at no latencies at which client-go's elector would keep it. Both hold one name for half an hour of virtual time, again
// when they have lost it, by requests that take as long: the elector's on a lock in memory, with the time-out that
// resourcelock.NewFromKubeconfig gives its client.
func TestFinding_L1_NoLossThatClientGosElectorWouldNotHave(t *testing.T) {
	var table strings.Builder
	fmt.Fprintf(&table, "%-50s %28s %28s\n", "latency, for 30 min at a TTL of 15 s", "Leasehold: terms, vacant", "client-go: terms, vacant")
	for _, shape := range shapes {
		for seed := range uint64(3) {
			var ours, theirs tenure
			synctest.Test(t, func(t *testing.T) { leaseholds(t, &ours, shape.of, seed) })
			synctest.Test(t, func(t *testing.T) { clientGos(t, &theirs, shape.of, seed) })
			fmt.Fprintf(&table, "%-50s %18d %9v %18d %9v\n", fmt.Sprintf("%s (seed %d)", shape.name, seed), ours.terms, ours.vacant(), theirs.terms, theirs.vacant())
			if lost := ours.terms - 1; lost > max(theirs.terms-1, 0) || ours.vacant() > theirs.vacant() || lost > 0 && strings.HasPrefix(shape.name, "constant") {
				t.Errorf("%s, seed %d: %d terms and %v vacant; client-go's elector: %d and %v", shape.name, seed, ours.terms, ours.vacant(), theirs.terms, theirs.vacant())
			}
		}
	}
	t.Log("\n" + table.String())
}

// tenure is how a name was held for half an hour.
type tenure struct {
	mu    sync.Mutex
	terms int
	held  time.Duration
}

const halfAnHour = 30 * time.Minute

func (h *tenure) vacant() time.Duration { return (halfAnHour - h.held).Round(100 * time.Millisecond) }

func (h *tenure) term(held time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.terms++
	h.held += held
}

// source gives latencies to requests that are sent at a time.
type source struct {
	mu    sync.Mutex
	of    servers.Latency
	rng   *rand.Rand
	began time.Time
}

func newSource(of servers.Latency, seed uint64) *source {
	return &source{of: of, rng: rand.New(rand.NewPCG(seed, 1)), began: time.Now()}
}

func (s *source) next() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.of(time.Since(s.began), s.rng)
}

// leaseholds holds the name by package lease, and takes it again when it was lost.
func leaseholds(t *testing.T, all *tenure, of servers.Latency, seed uint64) {
	clk, from := clocktest.New(0), newSource(of, seed)
	st := faulty.Wrap(memory.New(memory.Options{Clock: clk}), func(faulty.Op) faulty.Fault {
		d := from.next()
		return faulty.Fault{Delay: d / 2, ReplyDelay: d - d/2}
	})
	defer st.Close()
	m, err := lease.NewManager(st, lease.Options{TTL: electorTTL, Clock: clk})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	ctx, stop := context.WithTimeout(t.Context(), halfAnHour)
	defer stop()
	for ctx.Err() == nil {
		l, err := m.Acquire(ctx, "name")
		if err != nil {
			return
		}
		began := time.Now()
		select {
		case <-l.Context().Done():
		case <-ctx.Done():
		}
		all.term(time.Since(began))
	}
}

// clientGos holds the name by client-go's elector, which is started again when it has stopped.
func clientGos(t *testing.T, all *tenure, of servers.Latency, seed uint64) {
	lock := &memoryLock{from: newSource(of, seed)}
	ctx, stop := context.WithTimeout(t.Context(), halfAnHour)
	defer stop()
	for ctx.Err() == nil {
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: electorTTL, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) {
					began := time.Now()
					<-ctx.Done()
					all.term(time.Since(began))
				},
				OnStoppedLeading: func() {},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		elector.Run(ctx)
	}
	synctest.Wait()
}

// memoryLock is the lock of one candidate on an object in memory. Each request takes as long as its source says, and 5 s at most.
type memoryLock struct {
	from *source

	mu      sync.Mutex
	rec     *resourcelock.LeaderElectionRecord
	version int
	seen    int
}

// request has do done halfway through the time that a request takes.
func (l *memoryLock) request(ctx context.Context, do func() error) error {
	takes := l.from.next()
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second) // half of the RenewDeadline
	defer cancel()
	var err error
	for i, half := range []time.Duration{takes / 2, takes - takes/2} {
		if i == 1 {
			l.mu.Lock()
			err = do()
			l.mu.Unlock()
		}
		timer := time.NewTimer(half)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
	return err
}

func (l *memoryLock) Get(ctx context.Context) (rec *resourcelock.LeaderElectionRecord, raw []byte, err error) {
	err = l.request(ctx, func() error {
		if l.rec == nil {
			return apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, "name")
		}
		held := *l.rec
		rec, raw, l.seen = &held, fmt.Append(nil, held), l.version
		return nil
	})
	return rec, raw, err
}

func (l *memoryLock) Create(ctx context.Context, rec resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, rec)
}

func (l *memoryLock) Update(ctx context.Context, rec resourcelock.LeaderElectionRecord) error {
	return l.request(ctx, func() error {
		if l.seen != l.version {
			return errors.New("the object has been modified")
		}
		l.rec = &rec
		l.version++
		l.seen = l.version
		return nil
	})
}

func (l *memoryLock) RecordEvent(string) {}
func (l *memoryLock) Identity() string   { return "holder" }
func (l *memoryLock) Describe() string   { return "a lock in memory" }
