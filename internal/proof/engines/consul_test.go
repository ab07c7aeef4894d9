package engines

import (
	"context"
	"net/http"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/consul"
)

var _ = register(kind{
	name: "consul", start: servers.Consul,
	prepare: func(testing.TB, *servers.Server) instance {
		return instance{open: func(t testing.TB, addr string) store.Store {
			st, err := consul.New(consulClient(t, addr), consul.Options{Prefix: "engines/"})
			return opened(t, st, err)
		}}
	},
	recipe: &recipe{name: "api.Lock", dial: func(t testing.TB, srv *servers.Server) locker {
		client := consulClient(t, srv.Addr)
		session, _, err := client.Session().Create(&api.SessionEntry{LockDelay: 1}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return func(ctx context.Context, name string) (func() error, error) {
			l, err := client.LockOpts(&api.LockOptions{Key: "recipe/" + name, Session: session})
			if err != nil {
				return nil, err
			}
			_, err = l.Lock(ctx.Done())
			return l.Unlock, err
		}
	}},
	floor: consulFloor,
})

func consulFloor(t testing.TB, srv *servers.Server) locker {
	client := consulClient(t, srv.Addr)
	return swapping(func(ctx context.Context, name string, old uint64) (uint64, error) {
		op := &api.KVTxnOp{Verb: api.KVCAS, Key: name, Value: []byte(floorValue), Index: old} // unlike KV.CAS, it tells the next index
		ok, resp, _, err := client.Txn().Txn(api.TxnOps{{KV: op}}, new(api.QueryOptions).WithContext(ctx))
		switch {
		case err != nil:
			return 0, err
		case !ok:
			return 0, errRefused
		}
		return resp.Results[0].KV.ModifyIndex, nil
	})
}

func consulClient(t testing.TB, addr string) *api.Client {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	client, err := api.NewClient(&api.Config{Address: addr, HttpClient: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	return client
}
