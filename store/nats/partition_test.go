package nats

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// torn is a cluster whose first server can be cut off from the others. Clients reach all of them.
type torn struct {
	members []*member
	routes  []*servers.Network // each in front of one server's routes
}

// startTorn has the second and third server know each other's addresses, and all else go through the proxies.
func startTorn(t testing.TB) *torn {
	t.Helper()
	c := &torn{}
	listen := freeAddrs(t, 3)
	for _, addr := range listen {
		c.routes = append(c.routes, servers.Proxy(t, addr))
	}
	c.members = startClusterWith(t, func(i int) string {
		known := [3][]any{{c.routes[1].Addr, c.routes[2].Addr}, {c.routes[0].Addr, listen[2]}, {c.routes[0].Addr, listen[1]}}[i]
		return fmt.Sprintf("listen: %q, advertise: %q, routes: [", listen[i], c.routes[i].Addr) + fmt.Sprintf(`"nats://%s", "nats://%s"]`, known...)
	})
	return c
}

func (c *torn) cut() {
	for _, r := range c.routes {
		r.Refuse()
	}
}

func (c *torn) heal() {
	for _, r := range c.routes {
		r.Heal()
	}
}

// open returns a store of a client that stays with one server.
func (c *torn) open(t testing.TB, member int, bucket string) *Store {
	t.Helper()
	return open(t, dial(t, c.members[member].addr, natsgo.IgnoreDiscoveredServers()), bucket)
}

// lead has the first server lead the bucket's stream.
func (c *torn) lead(t testing.TB, s *Store) {
	t.Helper()
	var asked time.Time
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		info, err := s.stream.Info(t.Context())
		if err == nil && info.Cluster.Leader == "n0" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("n0 doesn't lead: %+v, %v", info, err)
		}
		if err == nil && time.Since(asked) > settling {
			_, _ = s.conn.Request(s.api+"STREAM.LEADER.STEPDOWN."+s.name, []byte(`{"placement":{"preferred":"n0"}}`), soon) // looked at again
			asked = time.Now()
		}
	}
}

// settling is how long an election may take before another one is asked for, which would begin all over again.
const settling = 5 * time.Second

// TestFinding_S7_AGuardIsNotAnsweredByALeaderThatWasCutOff: it shows a term that is over, and no guard goes by that.
func TestFinding_S7_AGuardIsNotAnsweredByALeaderThatWasCutOff(t *testing.T) {
	c := startTorn(t)
	bucket := newBucket(t, dial(t, c.members[1].addr), 3)
	minority, majority := c.open(t, 0, bucket), c.open(t, 1, bucket)
	c.lead(t, majority)
	first := storetest.MustPut(t, majority, store.Record{Key: "k", Owner: "first", Token: 1, TTL: time.Minute, Nonce: "n1"})
	if got, err := minority.Confirm(t.Context(), "k"); err != nil || got.Version != first.Version {
		t.Fatalf("before the cut: %+v, %v", got, err)
	}
	guard, err := fence.NewOnline(lease.Source(minority), fence.OnlineOptions{})
	if err != nil {
		t.Fatal(err)
	}
	old := fence.Sequencer{Name: "k", Holder: "first", Token: 1}
	if err := guard.Check(t.Context(), old); err != nil {
		t.Fatal("before the cut: ", err)
	}
	c.cut()
	second := first
	second.Owner, second.Token, second.Nonce = "second", 2, "n2"
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := majority.Put(ctx, second)
		cancel()
		if err == nil {
			break
		}
		if rec, err := majority.Get(t.Context(), "k"); err == nil && rec.Nonce == "n2" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the majority elects no leader: ", err)
		}
	}
	stale := 0
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		if rec, err := minority.Get(ctx, "k"); err == nil && rec.Token == 1 {
			stale++
		}
		if err := guard.Check(ctx, old); err == nil {
			t.Error("the guard admits a request of the term that is over")
		}
		cancel()
	}
	t.Logf("%d of 5 plain reads of the server that was cut off were stale", stale)
	c.heal()
	eventually(t, "the second term on the server that was cut off", func() bool {
		rec, err := minority.Confirm(t.Context(), "k")
		return err == nil && rec.Token == 2
	})
	if err := guard.Check(t.Context(), old); err == nil {
		t.Error("after the cut: the guard admits a request of the term that is over")
	}
	if _, err := minority.Confirm(t.Context(), "missing"); err == nil {
		t.Error("a key that isn't there is confirmed")
	}
	eventually(t, "the list", func() bool {
		for rec, err := range minority.List(t.Context(), "") {
			if err != nil {
				return false // it may not have a leader yet
			}
			if rec.Key != "k" {
				t.Errorf("the list shows what Confirm left behind: %+v", rec)
			}
		}
		return true
	})
}

// TestFinding_S7_Failovers: the leader is cut off, together with a client that renews a lease and claims another, while the majority
// elects a leader and another client wants both.
func TestFinding_S7_Failovers(t *testing.T) {
	c := startTorn(t)
	storetest.RunFailovers(t, func(t testing.TB) storetest.Instance {
		js, bucket := dial(t, c.members[1].addr), fmt.Sprint("failover", buckets.Add(1))
		eventually(t, "a bucket, after the cut before", func() bool { return Create(t.Context(), js, bucket, 3) == nil })
		opened := 0
		return storetest.Instance{
			Majority: true,
			Open: func(ctx context.Context) (s store.Store, err error) {
				js := dial(t, c.members[opened%2].addr, natsgo.IgnoreDiscoveredServers())
				opened++
				eventually(t, "a server that knows the bucket", func() bool { s, err = Open(ctx, js, bucket, Options{}); return err == nil })
				return s, err
			},
			Detach: func() error {
				c.lead(t, c.open(t, 1, bucket))
				c.cut()
				return nil
			},
			FailOver: func() error { c.heal(); return nil },
		}
	})
}

// TestFinding_L12_AWaitOutlastsServersWithoutALeader: they answer 503 until most of them are there again.
func TestFinding_L12_AWaitOutlastsServersWithoutALeader(t *testing.T) {
	c := startTorn(t)
	bucket := newBucket(t, dial(t, c.members[1].addr), 3)
	minority, majority := c.open(t, 0, bucket), c.open(t, 1, bucket)
	c.lead(t, majority)
	first := storetest.MustPut(t, majority, held("k", 1))
	waiting := startWait(t, minority, "k", first.Version)
	c.cut()
	eventually(t, "503", func() bool {
		_, err := minority.Get(t.Context(), "k")
		api := new(jetstream.APIError)
		return errors.As(err, &api) && api.Code == http.StatusServiceUnavailable
	})
	w, _ := minority.watches.Get("k")
	w.Again() // as after a consumer began anew
	select {
	case got := <-waiting:
		t.Fatalf("Wait has ended: %v", got.err)
	case <-time.After(2 * time.Second):
	}
	c.heal()
	next := held("k", 2)
	next.Version = first.Version
	mustWake(t, "after it", waiting, storetest.MustPut(t, majority, next))
}
