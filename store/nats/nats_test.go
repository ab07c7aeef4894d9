package nats

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(servers.Main(m)) }

var buckets atomic.Int64

// newBucket makes a bucket of the test's own, and returns its name.
func newBucket(t testing.TB, js jetstream.JetStream, replicas int) string {
	t.Helper()
	bucket := fmt.Sprintf("b%d-%d", time.Now().UnixNano(), buckets.Add(1))
	if err := Create(t.Context(), js, bucket, replicas); err != nil {
		t.Fatal(err)
	}
	return bucket
}

// dial returns a connection that is closed at the end of the test.
func dial(t testing.TB, addr string, opts ...natsgo.Option) jetstream.JetStream {
	t.Helper()
	opts = append([]natsgo.Option{natsgo.MaxReconnects(-1), natsgo.ReconnectWait(100 * time.Millisecond), natsgo.Timeout(soon)}, opts...)
	nc, err := natsgo.Connect("nats://"+addr, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// open returns a store that is closed at the end of the test.
func open(t testing.TB, js jetstream.JetStream, bucket string) *Store {
	t.Helper()
	s, err := Open(t.Context(), js, bucket, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func held(key string, token fence.Token) store.Record {
	return store.Record{Key: key, Owner: "holder", Token: token, TTL: time.Minute, Nonce: fmt.Sprint("n", token)}
}

// soon is how long a test waits for what should come at once, on a machine that is busy with other things.
const soon = time.Minute

// eventually fails the test unless ok soon returns true.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(soon); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, soon)
		}
	}
}

func TestConformance(t *testing.T) {
	srv := servers.NATS(t, servers.Shared())
	storetest.Run(t, func(t testing.TB) storetest.Instance {
		network := servers.Proxy(t, srv.Addr)
		bucket := newBucket(t, dial(t, srv.Addr), 1)
		return storetest.Instance{
			Open: func(ctx context.Context) (store.Store, error) {
				return Open(ctx, dial(t, network.Addr), bucket, Options{})
			},
			Pushes: true,
			Cut:    func() error { network.Cut(); return nil },
			Heal:   func() error { network.Heal(); return nil },
		}
	})
}

// Three replicas answer a write that meets another one under way by another error, and the handles are connected to different
// servers, none of which need lead.
func TestConformanceReplicated(t *testing.T) {
	members := startCluster(t)
	storetest.Run(t, func(t testing.TB) storetest.Instance {
		bucket := newBucket(t, dial(t, members[0].addr), 3)
		var opened atomic.Int64
		return storetest.Instance{
			Open: func(ctx context.Context) (store.Store, error) {
				return Open(ctx, dial(t, members[opened.Add(1)%3].addr), bucket, Options{})
			},
			Pushes: true,
		}
	})
}
