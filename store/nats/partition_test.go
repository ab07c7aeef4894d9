package nats

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/servers"
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
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		info, err := s.stream.Info(t.Context())
		if err == nil && info.Cluster.Leader == "n0" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("n0 doesn't lead: %+v, %v", info, err)
		}
		if err == nil {
			_, _ = s.conn.Request(s.api+"STREAM.LEADER.STEPDOWN."+s.name, []byte(`{"placement":{"preferred":"n0"}}`), soon) // looked at again
		}
	}
}

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

// failovers is how many rounds TestFinding_S7_Failover has.
func failovers(t testing.TB) int {
	t.Helper()
	text := os.Getenv("LEASEHOLD_FAILOVERS")
	if text == "" {
		return 2
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("LEASEHOLD_FAILOVERS=%q: want a number of rounds from 1", text)
	}
	return n
}

// TestFinding_S7_Failover: the leader is cut off, together with a client that renews a lease and claims another, while the majority
// elects a leader and another client wants both. There are never two holders, and no term that was announced is lost.
func TestFinding_S7_Failover(t *testing.T) {
	c := startTorn(t)
	bucket := newBucket(t, dial(t, c.members[1].addr), 3)
	stores := [2]*Store{c.open(t, 0, bucket), c.open(t, 1, bucket)}
	for range failovers(t) {
		c.failOver(t, stores)
	}
}

func (c *torn) failOver(t *testing.T, stores [2]*Store) {
	var managers [2]*lease.Manager
	for i, s := range stores {
		m, err := lease.NewManager(s, lease.Options{TTL: 3 * time.Second, Name: strconv.Itoa(i)})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		managers[i] = m
	}
	c.lead(t, stores[1])
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	var mu sync.Mutex
	told := map[string][]*lease.Lease{}
	var claims sync.WaitGroup
	defer claims.Wait()
	defer cancel()
	claim := func(m *lease.Manager, name string) {
		claims.Go(func() {
			if l, err := m.Acquire(ctx, name); err == nil {
				mu.Lock()
				defer mu.Unlock()
				told[name] = append(told[name], l)
			}
		})
	}
	holders := func(name string) (n int, newest fence.Token) {
		mu.Lock()
		defer mu.Unlock()
		for _, l := range told[name] {
			newest = max(newest, l.Token())
			if l.Check() == nil {
				n++
			}
		}
		return n, newest
	}
	claim(managers[0], "kept")
	eventually(t, "a holder", func() bool { n, _ := holders("kept"); return n == 1 })
	c.cut()
	for _, name := range []string{"kept", "claimed"} {
		claim(managers[0], name)
		claim(managers[1], name)
	}
	healed := false
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		held := 0
		for _, name := range []string{"kept", "claimed"} {
			n, _ := holders(name)
			if n > 1 {
				t.Fatalf("%s has %d holders", name, n)
			}
			held += n
		}
		switch since := time.Since(began); {
		case healed && held == 2 && since > 8*time.Second:
			for _, name := range []string{"kept", "claimed"} {
				_, newest := holders(name)
				if rec, err := stores[1].Confirm(ctx, name); err != nil || rec.Token < newest {
					t.Errorf("%s: token %d was announced, and %d is left: %v", name, newest, rec.Token, err)
				}
			}
			return
		case !healed && held == 2 && since > 6*time.Second, !healed && since > 30*time.Second:
			c.heal()
			healed = true
		case ctx.Err() != nil:
			t.Fatal("nobody holds them though there is a majority")
		}
	}
}
