package dynamodb

import (
	"context"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// instance is the store on a table of its own, behind a proxy.
func instance(t testing.TB, opts Options) storetest.Instance {
	name, srv := testTable(t)
	network := servers.Proxy(t, srv.Addr)
	opts.Attempt = patient
	return storetest.Instance{
		Open: func(ctx context.Context) (store.Store, error) {
			return Open(ctx, testClient(t, "http://"+network.Addr), name, opts)
		},
		Pushes: true, // it has a Wait of its own
		HasAge: opts.ServerClock > 0,
		Slow:   true,
		Cut:    func() error { network.Cut(); return nil },
		Heal:   func() error { network.Heal(); return nil },
	}
}

// The server's clock is trusted to a second, which holds for one server on this machine; nothing but ages depends on it.
func TestConformance(t *testing.T) {
	storetest.Run(t, func(t testing.TB) storetest.Instance { return instance(t, Options{ServerClock: time.Second}) })
}
