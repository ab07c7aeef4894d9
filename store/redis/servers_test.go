package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/storetest"
)

// TestConformanceOnACluster runs the suite on three nodes, with the client's own routing.
func TestConformanceOnACluster(t *testing.T) {
	addrs := cluster(t)
	storetest.Run(t, func(testing.TB) storetest.Instance {
		prefix := newPrefix()
		return storetest.Instance{
			Open: func(context.Context) (store.Store, error) {
				client := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: addrs, ReadTimeout: time.Minute})
				s, err := New(client, Options{Prefix: prefix})
				return owner{s, client}, err
			},
			Pushes: true,
		}
	})
}

// cluster starts three nodes that share the slots and returns their addresses.
func cluster(t testing.TB) (addrs []string) {
	t.Helper()
	const nodes, slots = 3, 16384
	var clients []*goredis.Client
	var buses []string
	for range nodes {
		_, bus, _ := net.SplitHostPort(servers.FreeAddr(t))
		srv := servers.Redis(t, servers.Set("cluster-enabled", "yes"), servers.Set("cluster-port", bus), servers.Set("cluster-node-timeout", "60000"))
		addrs, buses, clients = append(addrs, srv.Addr), append(buses, bus), append(clients, raw(t, srv))
	}
	for i, c := range clients {
		do(t, c, "cluster", "addslotsrange", i*slots/nodes, (i+1)*slots/nodes-1)
		do(t, c, "cluster", "set-config-epoch", i+1)
	}
	for i := 1; i < nodes; i++ {
		host, port, _ := net.SplitHostPort(addrs[i])
		do(t, clients[0], "cluster", "meet", host, port, buses[i])
	}
	for _, c := range clients {
		for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
			info := do(t, c, "cluster", "info").(string)
			if strings.Contains(info, "cluster_state:ok") && strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d", nodes)) && strings.Contains(info, "cluster_size:3") {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal(info)
			}
		}
	}
	return addrs
}

// TestASlotThatMoves: a record in a slot that goes to another node is found there.
func TestASlotThatMoves(t *testing.T) {
	addrs := cluster(t)
	client := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: addrs, ReadTimeout: time.Minute})
	defer client.Close()
	s, err := New(client, Options{Prefix: "{moving}:"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rec := storetest.MustPut(t, s, held("k", 1))
	ctx := t.Context()
	slot, err := client.ClusterKeySlot(ctx, "{moving}:k").Result()
	if err != nil {
		t.Fatal(err)
	}
	var from, to *goredis.Client
	var ids [2]string
	for _, addr := range addrs {
		c := goredis.NewClient(&goredis.Options{Addr: addr, ReadTimeout: time.Minute})
		defer c.Close()
		id, err := c.ClusterMyID(ctx).Result()
		if err != nil {
			t.Fatal(err)
		}
		if n, err := c.ClusterCountKeysInSlot(ctx, int(slot)).Result(); err == nil && n == 1 {
			from, ids[0] = c, id
		} else {
			to, ids[1] = c, id
		}
	}
	do(t, to, "cluster", "setslot", slot, "importing", ids[0])
	do(t, from, "cluster", "setslot", slot, "migrating", ids[1])
	if rec, err = s.Put(ctx, rec); err != nil {
		t.Fatal("while it is about to move: ", err)
	}
	host, port, _ := net.SplitHostPort(to.Options().Addr)
	do(t, from, "migrate", host, port, "{moving}:k", 0, 5000)
	if rec, err = s.Put(ctx, rec); err != nil { // answered by ASK
		t.Fatal("while its slot moves: ", err)
	}
	for _, c := range []*goredis.Client{to, from} {
		do(t, c, "cluster", "setslot", slot, "node", ids[1])
	}
	if rec, err = s.Put(ctx, rec); err != nil { // answered by MOVED
		t.Fatal("after it has moved: ", err)
	}
	if err := s.Delete(ctx, "k", rec.Version); err != nil {
		t.Fatal(err)
	}
}

// TestAReplicaIsRefused: it would show what is stale.
func TestAReplicaIsRefused(t *testing.T) {
	primary := servers.Redis(t)
	replica := servers.Redis(t, servers.ReplicaOf(primary))
	writer := mustOpen(t, primary, primary.Addr, Options{})
	rec := storetest.MustPut(t, writer, held("k", 1))
	copied := raw(t, replica)
	storetest.Eventually(t, func() error {
		if version := copied.HGet(t.Context(), DefaultPrefix+"k", "version").Val(); version != rec.Version {
			return fmt.Errorf("the replica has version %q, want %q", version, rec.Version)
		}
		return nil
	})
	opts := options(t, replica, replica.Addr)
	opts.MaxRetries = -1
	opened, err := openOwner(opts, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	s := opened.(owner).Store
	_, getErr := s.Get(t.Context(), "k")
	_, missErr := s.Get(t.Context(), "missing")
	_, putErr := s.Put(t.Context(), rec)
	// What isn't what the replica has might be what the primary has.
	behind := rec
	behind.Version = "unknown here"
	_, conflictErr := s.Put(t.Context(), behind)
	_, waitErr := s.Wait(t.Context(), "k", "")
	var listErr error
	for _, err := range s.List(t.Context(), "none/") {
		listErr = err
	}
	for what, err := range map[string]error{
		"Get": getErr, "Get of a missing key": missErr, "Put": putErr, "Put at a version of which it hasn't heard": conflictErr, "Wait": waitErr,
		"Delete at such a version": s.Delete(t.Context(), "k", behind.Version),
		"List":                     listErr, "Delete": s.Delete(t.Context(), "k", rec.Version),
	} {
		if err == nil || !strings.Contains(err.Error(), "name the primary") || errors.Is(err, store.ErrUnknownOutcome) || errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: %v", what, err)
		}
	}
	failed := map[string]bool{}
	for _, f := range s.Inspect(t.Context()) {
		failed[f.What] = f.Status == driver.StatusFail
	}
	if !failed["role"] || !failed["permissions"] {
		t.Errorf("Inspect: %v", failed)
	}
	// It becomes the primary: all works, and a handle that a client for Sentinel would have led there goes on.
	do(t, copied, "replicaof", "no", "one")
	if got, err := s.Get(t.Context(), "k"); err != nil || got.Version != rec.Version {
		t.Errorf("after the failover: %+v, %v", got, err)
	}
	storetest.MustPut(t, s, rec)
}

// TestReplicasAcknowledge: a write that too few of them have is of unknown outcome.
func TestReplicasAcknowledge(t *testing.T) {
	primary := servers.Redis(t)
	replica := servers.Redis(t, servers.ReplicaOf(primary))
	s := mustOpen(t, primary, primary.Addr, Options{Replicas: 1, ReplicaWait: 30 * time.Second})
	hasty := mustOpen(t, primary, primary.Addr, Options{Replicas: 1, ReplicaWait: 100 * time.Millisecond})
	rec := storetest.MustPut(t, s, held("k", 1))
	rec = storetest.MustPut(t, s, rec)
	if _, err := s.Put(t.Context(), held("k", 2)); !errors.Is(err, store.ErrConflict) {
		t.Errorf("%v, want a conflict", err)
	}
	do(t, raw(t, primary), "script", "flush")
	rec = storetest.MustPut(t, s, rec)
	replica.Pause()
	next := rec
	next.Nonce = "lonely"
	_, err := hasty.Put(t.Context(), next)
	if !errors.Is(err, store.ErrUnknownOutcome) || !strings.Contains(err.Error(), "0 replicas acknowledged") {
		t.Errorf("with the replica stopped: %v", err)
	}
	if _, err := s.Put(t.Context(), rec); !errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrUnknownOutcome) {
		t.Errorf("a conflict with a write of others needs no acknowledgement: %v", err)
	}
	if err := hasty.Delete(t.Context(), "missing", "x"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("%v", err)
	}
	replica.Resume()
	current, err := s.Get(t.Context(), "k")
	if err != nil || current.Nonce != "lonely" {
		t.Fatalf("%+v, %v", current, err)
	}
	if err := s.Delete(t.Context(), "k", current.Version); err != nil {
		t.Errorf("with the replica back: %v", err)
	}
}

// TestKilled: what was acknowledged is there when the server is started again, and whoever waits hears of what comes then.
func TestKilled(t *testing.T) {
	srv := servers.Redis(t)
	s := mustOpen(t, srv, srv.Addr, Options{})
	for range 3 {
		rec, err := store.Load(t.Context(), s, "k")
		if err != nil {
			t.Fatal(err)
		}
		rec.Token, rec.Owner, rec.TTL = rec.Token+1, "holder", time.Minute
		rec = storetest.MustPut(t, s, rec)
		waited := storetest.MustPut(t, s, store.Record{Key: newVersion()})
		type result struct {
			rec store.Record
			err error
		}
		waiting := make(chan result, 1)
		go func() {
			for { // an outage may end it
				rec, err := s.Wait(t.Context(), waited.Key, waited.Version)
				if err == nil || t.Context().Err() != nil {
					waiting <- result{rec, err}
					return
				}
			}
		}()
		stopped := make(chan error, 1)
		var acknowledged atomic.Uint64
		from := uint64(rec.Token)
		go func() {
			for {
				next := rec
				next.Token++
				written, err := s.Put(t.Context(), next)
				if err != nil {
					stopped <- err
					return
				}
				rec = written
				acknowledged.Store(uint64(rec.Token))
			}
		}()
		for acknowledged.Load() < from+50 && len(stopped) == 0 {
			time.Sleep(time.Millisecond)
		}
		srv.Kill()
		stop := <-stopped
		srv.Restart()
		got, err := s.Get(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		last := acknowledged.Load()
		if n := uint64(got.Token); n < last || n > last+1 || (n == last+1 && !errors.Is(stop, store.ErrUnknownOutcome)) {
			t.Errorf("token %d after the restart; %d was acknowledged, and the next ended with %v", n, last, stop)
		}
		written := storetest.MustPut(t, s, waited)
		if r := <-waiting; r.err != nil || r.rec.Version != written.Version {
			t.Errorf("the Wait returned %+v, %v", r.rec, r.err)
		}
	}
}

// counted counts what is sent: each is a round trip, since nothing is sent before the answer to what came before.
type counted struct {
	net.Conn
	sent *atomic.Int64
}

func (c counted) Write(b []byte) (int, error) {
	c.sent.Add(1)
	return c.Conn.Write(b)
}

// TestRoundTrips: what acquiring, renewing, releasing and losing take is one each.
func TestRoundTrips(t *testing.T) {
	primary := servers.Redis(t)
	servers.Redis(t, servers.ReplicaOf(primary))
	for _, replicas := range []int{0, 1} {
		var sent atomic.Int64
		opts := options(t, primary, primary.Addr)
		opts.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			return counted{conn, &sent}, err
		}
		opened, err := openOwner(opts, Options{Replicas: replicas, ReplicaWait: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer opened.Close()
		var rec store.Record
		key := newVersion()
		warm(t, opened)
		for _, step := range []struct {
			what string
			do   func() error
		}{
			{"acquire", func() (err error) { rec, err = opened.Put(t.Context(), held(key, 1)); return err }},
			{"renew", func() (err error) { rec, err = opened.Put(t.Context(), rec); return err }},
			{"lose", func() error {
				if _, err := opened.Put(t.Context(), held(key, 2)); !errors.Is(err, store.ErrConflict) {
					return err
				}
				return nil
			}},
			{"delete", func() error { return opened.Delete(t.Context(), key, rec.Version) }},
		} {
			sent.Store(0)
			if err := step.do(); err != nil {
				t.Fatalf("%s: %v", step.what, err)
			}
			if n := sent.Load(); n != 1 {
				t.Errorf("%s took %d round trips, want 1", step.what, n)
			}
		}
	}
}
