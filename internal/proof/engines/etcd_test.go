package engines

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/etcd"
)

var _ = register(kind{
	name: "etcd", start: servers.Etcd,
	prepare: func(testing.TB, *servers.Server) instance {
		return instance{open: func(t testing.TB, addr string) store.Store {
			st, err := etcd.New(etcdClient(t, addr), etcd.Options{Prefix: "engines/"})
			return opened(t, st, err)
		}}
	},
	recipe: &recipe{name: "concurrency.Mutex", dial: func(t testing.TB, srv *servers.Server) locker {
		session, err := concurrency.NewSession(etcdClient(t, srv.Addr))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { session.Close() })
		return func(ctx context.Context, name string) (func() error, error) {
			m := concurrency.NewMutex(session, "recipe/"+name)
			return func() error { return m.Unlock(ctx) }, m.Lock(ctx)
		}
	}},
	floor: etcdFloor,
	erase: func(t testing.TB, srv *servers.Server, name string) error {
		_, err := etcdClient(t, srv.Addr).Delete(t.Context(), "engines/"+name)
		return err
	},
	planned: true,
})

func etcdFloor(t testing.TB, srv *servers.Server) locker {
	client := etcdClient(t, srv.Addr)
	return swapping(func(ctx context.Context, name string, old int64) (int64, error) {
		resp, err := client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(name), "=", old)).Then(clientv3.OpPut(name, floorValue)).Commit()
		switch {
		case err != nil:
			return 0, err
		case !resp.Succeeded:
			return 0, errRefused
		}
		return resp.Header.Revision, nil
	})
}

func etcdClient(t testing.TB, addr string) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{addr}, DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 5 * time.Second, Logger: zap.NewNop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// Candidates that follow the records that matter to them by watches ask etcd less often than those that read them, at the same time and on the
// same server: a leader and 20 candidates beside it each, with clients of their own.
func TestFollowingOnEtcdSavesRequests(t *testing.T) {
	const candidates, counted = 20, 30 * time.Second
	srv := servers.Etcd(t, servers.Shared())
	prefix := fmt.Sprintf("requests/%d/", time.Now().UnixNano())
	tallies := map[string]*tally{"follow": {}, "read": {}}
	for i := range candidates + 1 {
		for name, c := range tallies {
			st, err := etcd.New(countedClient(t, srv, c), etcd.Options{Prefix: prefix})
			must(t, err)
			var s store.Store = st
			if name == "read" {
				s = dear{st}
			}
			stand(t, s, name, fmt.Sprint("c", i))
		}
	}
	st, err := etcd.New(etcdClient(t, srv.Addr), etcd.Options{Prefix: prefix})
	must(t, err)
	defer st.Close()
	rates := map[string]float64{}
	for name := range tallies {
		settledOn(t, st, name, candidates+1)
	}
	before := map[string]map[string]int{}
	for name, c := range tallies {
		before[name] = c.get()
	}
	time.Sleep(counted)
	for name, c := range tallies {
		after := c.get()
		for _, what := range slices.Sorted(maps.Keys(after)) {
			rate := float64(after[what]-before[name][what]) / counted.Minutes()
			t.Logf("%s: %7.1f %s a minute", name, rate, what)
			if what != "events" {
				rates[name] += rate
			}
		}
	}
	t.Logf("requests a minute: %.0f by following, %.0f by reading", rates["follow"], rates["read"])
	if rates["follow"] >= rates["read"] {
		t.Errorf("%.0f requests a minute by following, %.0f by reading", rates["follow"], rates["read"])
	}
}

// dear is a store whose Waits nobody follows by.
type dear struct{ *etcd.Store }

func (s dear) Properties() store.Properties {
	p := s.Store.Properties()
	p.CheapWait = false
	return p
}

// countedClient is a client whose requests, messages to watches, and answers of watches are counted.
func countedClient(t *testing.T, srv *servers.Server, c *tally) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{srv.Addr}, DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 5 * time.Second, Logger: zap.NewNop(),
		DialOptions: []grpc.DialOption{
			grpc.WithChainUnaryInterceptor(func(
				ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
			) error {
				c.add(method)
				return invoke(ctx, method, req, reply, cc, opts...)
			}),
			grpc.WithChainStreamInterceptor(func(
				ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption,
			) (grpc.ClientStream, error) {
				s, err := open(ctx, desc, cc, method, opts...)
				return countedStream{s, c}, err
			}),
		},
	})
	must(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}

type countedStream struct {
	grpc.ClientStream
	c *tally
}

func (s countedStream) SendMsg(m any) error {
	s.c.add("messages to watches")
	return s.ClientStream.SendMsg(m)
}

func (s countedStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if resp, ok := m.(*pb.WatchResponse); ok && err == nil && len(resp.Events) > 0 {
		s.c.add("events")
	}
	return err
}
