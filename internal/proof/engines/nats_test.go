package engines

import (
	"context"
	"testing"
	"time"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/nats"
)

const natsBucket = "engines"

var _ = register(kind{
	name: "nats",
	start: func(t testing.TB, opts ...servers.Option) *servers.Server {
		return servers.NATS(t, opts...)
	},
	prepare: prepareNATS,
	floor:   natsFloor,
	crowd:   &crowd{},
})

func prepareNATS(t testing.TB, srv *servers.Server) instance {
	if err := nats.Create(t.Context(), natsClient(t, srv.Addr), natsBucket, 1); err != nil {
		t.Fatal(err)
	}
	return instance{open: func(t testing.TB, addr string) store.Store {
		st, err := nats.Open(t.Context(), natsClient(t, addr), natsBucket, nats.Options{SyncAlways: true})
		return opened(t, st, err)
	}}
}

func natsFloor(t testing.TB, srv *servers.Server) locker {
	prepareNATS(t, srv)
	kv, err := natsClient(t, srv.Addr).KeyValue(t.Context(), natsBucket)
	if err != nil {
		t.Fatal(err)
	}
	return swapping(func(ctx context.Context, name string, old uint64) (uint64, error) {
		return kv.Update(ctx, name, []byte(floorValue), old)
	})
}

func natsClient(t testing.TB, addr string) jetstream.JetStream {
	t.Helper()
	nc, err := natsgo.Connect("nats://"+addr, natsgo.MaxReconnects(-1), natsgo.ReconnectWait(100*time.Millisecond), natsgo.Timeout(time.Minute))
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
