package kubernetes

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

func TestMain(m *testing.M) {
	var opts []goleak.Option
	if os.Getenv("LEASEHOLD_TEST_KUBERNETES_URL") != "" { // connections to a server that doesn't end with the tests stay for a while
		opts = append(opts, goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
	}
	goleak.VerifyTestMain(servers.Main(m), opts...)
}

func TestConformance(t *testing.T) {
	srv := servers.Kubernetes(t, servers.Shared())
	storetest.Run(t, func(t testing.TB) storetest.Instance {
		network, namespace := servers.Proxy(t, srv.Addr), newNamespace(t, srv)
		return storetest.Instance{
			Open: func(context.Context) (store.Store, error) {
				return New(dial(t, config(t, srv, network.Addr)), Options{Namespace: namespace})
			},
			Pushes: true,
			Slow:   true,
			Cut:    func() error { network.Cut(); return nil },
			Heal:   func() error { network.Heal(); return nil },
		}
	})
}

// config returns an administrator's configuration, with connections of its own, which go to addr.
func config(t testing.TB, srv *servers.Server, addr string) *rest.Config {
	t.Helper()
	c, err := clientcmd.BuildConfigFromFlags("", srv.Extra["kubeconfig"])
	if err != nil {
		t.Fatal(err)
	}
	c.Host, c.QPS = "https://"+addr, -1
	c.Dial = (&net.Dialer{Timeout: 5 * time.Second}).DialContext // a client with a dialer of its own shares no connection
	return c
}

// dial returns a client whose connections are closed at the end of the test.
func dial(t testing.TB, c *rest.Config) *coordination.CoordinationV1Client {
	t.Helper()
	transport, err := TransportFor(c)
	if err != nil {
		t.Fatal(err)
	}
	hc := &http.Client{Transport: transport}
	t.Cleanup(hc.CloseIdleConnections)
	client, err := coordination.NewForConfigAndClient(c, hc)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

var namespaces atomic.Int64

// newNamespace makes a namespace of the test's own.
func newNamespace(t testing.TB, srv *servers.Server) string {
	t.Helper()
	name := fmt.Sprintf("test-%d-%d", time.Now().UnixNano(), namespaces.Add(1))
	apply(t, srv, "/api/v1/namespaces", "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+name+"}\n")
	return name
}

// apply makes an object out of YAML.
func apply(t testing.TB, srv *servers.Server, path, yaml string) {
	t.Helper()
	err := dial(t, config(t, srv, srv.Addr)).RESTClient().Post().AbsPath(path).
		SetHeader("Content-Type", "application/yaml").Body([]byte(yaml)).Do(t.Context()).Error()
	if err != nil {
		t.Fatalf("%s: %v\n%s", path, err, yaml)
	}
}

// open returns a store that is closed at the end of the test.
func open(t testing.TB, client coordination.CoordinationV1Interface, namespace string) *Store {
	t.Helper()
	s, err := New(client, Options{Namespace: namespace})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// fresh returns a store in a namespace of its own, on the shared server.
func fresh(t testing.TB) (*Store, *servers.Server) {
	t.Helper()
	srv := servers.Kubernetes(t, servers.Shared())
	return open(t, dial(t, config(t, srv, srv.Addr)), newNamespace(t, srv)), srv
}

func held(key string, token fence.Token) store.Record {
	return store.Record{Key: key, Owner: "holder", Token: token, TTL: time.Minute, Nonce: fmt.Sprint("n", token)}
}

// counter counts the requests of a client, and may answer in place of the server.
type counter struct {
	next   http.RoundTripper
	count  atomic.Int64
	answer atomic.Pointer[func(*http.Request) (*http.Response, error)]
}

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	defer c.count.Add(1) // when it was answered
	if f := c.answer.Load(); f != nil {
		return (*f)(r)
	}
	return c.next.RoundTrip(r)
}

// wrap has the requests of clients made from cfg counted.
func (c *counter) wrap(cfg *rest.Config) *rest.Config {
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		c.next = next
		return c
	})
	return cfg
}
