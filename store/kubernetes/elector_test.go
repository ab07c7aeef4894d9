package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
)

// span is one hold: from when its holder knew of it until it gave it up, or must have.
type span struct {
	ours     bool
	from, to clock.Instant
	token    fence.Token // of ours
	how      string
}

// contest is one Lease object that client-go's elector and Leasehold want in turns.
type contest struct {
	t      testing.TB
	client *coordination.CoordinationV1Client
	st     *Store
	name   string

	mu    sync.Mutex
	got   map[bool]int // by ours: how often
	news  chan struct{}
	spans []span
}

func newContest(t testing.TB) *contest {
	t.Helper()
	s, srv := fresh(t)
	return &contest{
		t: t, client: dial(t, config(t, srv, srv.Addr)), st: s, name: "my-controller", got: map[bool]int{}, news: make(chan struct{}),
	}
}

// took says that a side has the lease, and returns how often the other one had it before.
func (c *contest) took(ours bool) (others int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got[ours]++
	close(c.news)
	c.news = make(chan struct{})
	return c.got[!ours]
}

func (c *contest) times(ours bool) (int, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.got[ours], c.news
}

// after waits until a side had the lease more than n times.
func (c *contest) after(ctx context.Context, ours bool, n int) error {
	for {
		times, news := c.times(ours)
		if times > n {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return fmt.Errorf("side ours=%v never got the lease a time more than %d: %w", ours, n, ctx.Err())
		}
	}
}

func (c *contest) add(s span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spans = append(c.spans, s)
}

// hold is one turn of a side.
type hold struct {
	ttl, hold time.Duration
	crash     bool
}

// ours takes the lease as a program with Leasehold does.
func (c *contest) ours(ctx context.Context, h hold) (others int, err error) {
	var outage faulty.Outage
	m, err := lease.NewManager(faulty.Wrap(c.st, outage.Plan(nil)), lease.Options{TTL: h.ttl})
	if err != nil {
		return 0, err
	}
	l, err := m.Acquire(ctx, c.name)
	if err != nil {
		return 0, errors.Join(err, m.Close())
	}
	s := span{ours: true, from: clock.System().Now(), token: l.Token(), how: fmt.Sprintf("%+v", h)}
	others = c.took(true)
	select {
	case <-time.After(h.hold):
	case <-l.Context().Done():
		c.t.Logf("lost: %v", context.Cause(l.Context()))
	}
	s.to = min(clock.System().Now(), l.ValidUntil())
	if h.crash { // it can't tell anybody, and goes on until its own clock tells it to stop
		outage.Start()
		<-l.Context().Done()
		s.to = l.ValidUntil()
		c.add(s)
		_ = m.Close() // it can't release
		return others, nil
	}
	c.add(s)
	if err = l.Release(ctx); errors.Is(err, store.ErrUnknownOutcome) {
		err = nil // it is free when its time is over
	}
	return others, errors.Join(err, m.Close())
}

// theirs takes the lease as a controller does.
func (c *contest) theirs(ctx context.Context, id string, h hold) (others int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	led := make(chan struct{})
	le, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: c.st.namespace, Name: c.name}, Client: c.client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: id},
		},
		LeaseDuration: h.ttl, RenewDeadline: h.ttl * 3 / 4, RetryPeriod: 40 * time.Millisecond, ReleaseOnCancel: !h.crash,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				defer close(led)
				s := span{from: clock.System().Now(), how: fmt.Sprintf("%+v", h)}
				others = c.took(false)
				select {
				case <-time.After(h.hold):
				case <-ctx.Done():
				}
				s.to = clock.System().Now()
				c.add(s)
				cancel()
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return 0, err
	}
	le.Run(ctx)
	select {
	case <-led:
		return others, nil
	case <-time.After(10 * time.Second): // it may have led just now
		return 0, errors.New("never led")
	}
}

// play has both sides take those turns, each as soon as the other one has had its own.
func (c *contest) play(limit time.Duration, ours, theirs []hold) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), limit)
	defer cancel()
	var running sync.WaitGroup
	side := func(mine bool, turns []hold, take func(int, hold) (int, error)) {
		for i, h := range turns {
			others, err := take(i, h)
			if err == nil && i < len(turns)-1 {
				err = c.after(ctx, !mine, others)
			}
			if err != nil {
				c.t.Errorf("turn %d, ours=%v: %v", i, mine, err)
				cancel()
				return
			}
		}
	}
	running.Go(func() { side(true, ours, func(_ int, h hold) (int, error) { return c.ours(ctx, h) }) })
	running.Go(func() {
		side(false, theirs, func(i int, h hold) (int, error) { return c.theirs(ctx, fmt.Sprint("controller-", i%2), h) })
	})
	running.Wait()
}

// judge checks that no two held at once, and that our tokens rose, and returns the hand-overs in each direction.
func (c *contest) judge() (toOurs, toTheirs int) {
	slices.SortFunc(c.spans, func(a, b span) int { return int(a.from - b.from) })
	var token fence.Token
	for i, s := range c.spans {
		if s.ours {
			if s.token <= token {
				c.t.Errorf("hold %d has token %d after %d", i, s.token, token)
			}
			token = s.token
		}
		if i == 0 {
			continue
		}
		prev := c.spans[i-1]
		if s.from < prev.to {
			stalltest.Over(c.t, prev.to.Sub(s.from), "two at once for %v: %+v and %+v", prev.to.Sub(s.from), prev, s)
		}
		switch {
		case s.ours && !prev.ours:
			toOurs++
		case !s.ours && prev.ours:
			toTheirs++
		}
	}
	return toOurs, toTheirs
}

func repeat(n int, h hold) []hold {
	all := make([]hold, n)
	for i := range all {
		all[i] = h
	}
	return all
}

// TestSharedWithElectors: client-go's elector and Leasehold hand one Lease object to and fro, and never hold it at
// once: when it is released, when its holder has crashed, and while it is renewed before the other's eyes.
//
// Where the machine stalls for longer than a lease lasts, client-go's holder goes on as if nothing had happened, and has nothing like
// Check to ask: so this wants a steady one.
func TestSharedWithElectors(t *testing.T) {
	stalltest.Run(t, func(t testing.TB) { shareWithElectors(t, newContest(t)) })
}

func shareWithElectors(t testing.TB, c *contest) {
	const turns = 200
	short := hold{ttl: 2 * time.Second, hold: 2 * time.Millisecond}
	c.play(5*time.Minute, repeat(turns, short), repeat(turns, short))
	toOurs, toTheirs := c.judge()
	t.Logf("%d hand-overs to Leasehold, %d to client-go", toOurs, toTheirs)
	if toOurs < turns-1 || toTheirs < turns-1 {
		t.Errorf("%d hand-overs to Leasehold and %d to client-go, want %d of each at least", toOurs, toTheirs, turns-1)
	}

	crash := hold{ttl: 1100 * time.Millisecond, hold: 300 * time.Millisecond, crash: true}
	c.play(time.Minute, repeat(4, crash), repeat(4, crash))

	// Renewed for several times its TTL. One second is as short as client-go's can be, and cut to whole ones.
	c.play(time.Minute, []hold{{ttl: time.Second, hold: 5 * time.Second}, short}, []hold{{ttl: 1900 * time.Millisecond, hold: 4 * time.Second}, short})
	toOurs, toTheirs = c.judge()
	t.Logf("with crashes and long holds: %d hand-overs to Leasehold, %d to client-go", toOurs, toTheirs)

	obj, err := c.client.Leases(c.st.namespace).Get(t.Context(), c.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if n := int(*obj.Spec.LeaseTransitions); n < toOurs+toTheirs {
		t.Errorf("%d transitions after %d hand-overs", n, toOurs+toTheirs)
	}
}
