package nats

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/leasehold/leasehold/internal/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(servers.Main(m)) }

var buckets atomic.Int64

// newBucket makes a bucket of the test's own, and returns its name.
func newBucket(t testing.TB, addr string) string {
	t.Helper()
	bucket := fmt.Sprintf("b%d", buckets.Add(1))
	if err := Create(t.Context(), dial(t, addr), bucket, 1); err != nil {
		t.Fatal(err)
	}
	return bucket
}

// dial returns a connection that is closed at the end of the test.
func dial(t testing.TB, addr string, opts ...natsgo.Option) jetstream.JetStream {
	t.Helper()
	opts = append([]natsgo.Option{natsgo.MaxReconnects(-1), natsgo.ReconnectWait(retryMax / 10)}, opts...)
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

func TestConformance(t *testing.T) {
	srv := servers.NATS(t, servers.Shared())
	storetest.Run(t, func(t testing.TB) storetest.Instance {
		network := servers.Proxy(t, srv.Addr)
		bucket := newBucket(t, srv.Addr)
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
