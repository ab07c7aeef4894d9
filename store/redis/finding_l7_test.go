package redis

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// soon is less than the timer takes, which finds what nobody told of after 5 s at the earliest.
const soon = 4 * time.Second

// receiving counts the bytes that come.
type receiving struct {
	net.Conn
	bytes *atomic.Int64
}

func (r receiving) Read(b []byte) (int, error) {
	n, err := r.Conn.Read(b)
	r.bytes.Add(int64(n))
	return n, err
}

// awaitAll has the store wait for each of the keys, which aren't there, and returns when the server tells it of all. What comes of a Wait
// is sent on the channel.
func awaitAll(t testing.TB, s *Store, watcher *goredis.Client, keys []string) <-chan store.Record {
	t.Helper()
	came := make(chan store.Record, len(keys))
	for _, key := range keys {
		go func() {
			if rec, err := s.Wait(t.Context(), key, ""); err == nil {
				came <- rec
			}
		}()
	}
	for _, key := range keys {
		heard(t, watcher, s.topic(key))
	}
	return came
}

// TestFinding_L7_AWaiterHearsOfItsKeysOnly: what the server sends to who waits doesn't grow with what others write.
func TestFinding_L7_AWaiterHearsOfItsKeysOnly(t *testing.T) {
	srv := servers.Redis(t, servers.Shared())
	var received atomic.Int64
	opts := options(t, srv, srv.Addr)
	opts.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return receiving{conn, &received}, err
	}
	st, err := openOwner(opts, Options{Prefix: newPrefix()})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	waiter := st.(owner).Store
	var keys []string
	for i := range 10 {
		keys = append(keys, fmt.Sprint("awaited", i))
	}
	came := awaitAll(t, waiter, raw(t, srv), keys)
	writer := mustOpen(t, srv, srv.Addr, waiter.opts)
	before := received.Load()
	const writes = 500
	for i := range writes {
		storetest.MustPut(t, writer, held(fmt.Sprint("foreign", i), 1))
	}
	storetest.MustPut(t, writer, held("awaited3", 1)) // what was told before has come when this has
	if rec := <-came; rec.Key != "awaited3" {
		t.Errorf("%s came, want awaited3", rec.Key)
	}
	// A message is some 100 bytes. What the timer reads, and this one message and its record, are a few.
	if n := received.Load() - before; n > writes*10 {
		t.Errorf("%d bytes came for %d writes of keys that nobody waits for", n, writes)
	}
}

// TestFinding_L7_OlderProcesses: they tell of every key on the prefix's own channel, and are told by nobody else.
func TestFinding_L7_OlderProcesses(t *testing.T) { stalltest.Run(t, olderProcesses) }

func olderProcesses(t testing.TB) {
	srv := servers.Redis(t, servers.Shared())
	client := raw(t, srv)
	s := mustOpen(t, srv, srv.Addr, Options{Prefix: newPrefix()})
	came := awaitAll(t, s, client, []string{"k", "other"})
	w, err := s.putting(held("k", 1))
	if err != nil {
		t.Fatal(err)
	}
	for i, arg := range w.args {
		if arg == s.topic("k") {
			w.args[i] = s.opts.Prefix + "changed"
		}
	}
	asked := time.Now()
	if err := s.write(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if rec := <-came; rec.Key != "k" || time.Since(asked) > soon {
		t.Errorf("%s came after %v, want k within %v", rec.Key, time.Since(asked), soon)
	}
}

// TestFinding_L7_AConnectionThatIsReplaced: the next one hears of the same keys.
func TestFinding_L7_AConnectionThatIsReplaced(t *testing.T) {
	stalltest.Run(t, aConnectionThatIsReplaced)
}

func aConnectionThatIsReplaced(t testing.TB) {
	srv := servers.Redis(t, servers.Shared())
	client, network := raw(t, srv), servers.Proxy(t, srv.Addr)
	s := mustOpen(t, srv, network.Addr, Options{Prefix: newPrefix()})
	writer := mustOpen(t, srv, srv.Addr, s.opts)
	came := awaitAll(t, s, client, []string{"a", "b"})
	for _, key := range []string{"a", "b"} {
		network.Reset()
		heard(t, client, s.topic(key))
		asked := time.Now()
		storetest.MustPut(t, writer, held(key, 1))
		if rec := <-came; rec.Key != key || time.Since(asked) > soon {
			t.Errorf("%s came after %v, want %s within %v", rec.Key, time.Since(asked), key, soon)
		}
	}
}
