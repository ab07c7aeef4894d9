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

var consulKind = kind{
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
