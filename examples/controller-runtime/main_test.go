package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/leasehold/leasehold/compat/controllerruntime"
	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/lease"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	goleak.VerifyTestMain(servers.Main(m))
}

const namespace = "default"

// instance is one replica, whose every connection goes through a network of its own.
type instance struct {
	net     *servers.Network
	config  *rest.Config
	terms   chan election.Term // that it has begun
	leaders chan bool          // whether its runnable for the leader runs, whenever that changes
	owner   string
	stop    context.CancelFunc
}

// launch runs a replica until the test ends. Its TTL is one that an API server on a busy machine can be late by, and nothing changes. Nor
// may a machine that stalls as a term expires end the process: the leader's work has a fifteenth of the TTL to stop before stuck is called.
func launch(t *testing.T, srv *servers.Server, name string) *instance {
	t.Helper()
	x := &instance{
		net: servers.Proxy(t, srv.Addr), terms: make(chan election.Term, 100), leaders: make(chan bool, 100),
	}
	x.config = connect(t, srv, x.net.Addr)
	ctx, cancel := context.WithCancel(t.Context())
	x.stop = cancel
	done, ready := make(chan error, 1), make(chan string, 1)
	go func() {
		done <- withLeases(x.config, namespace, lease.Options{TTL: 30 * time.Second, Name: name}, func(m *lease.Manager) error {
			ready <- m.Holder()
			return run(ctx, x.config, m, manager.Options{Metrics: metricsserver.Options{BindAddress: "0"}}, x.setup)
		})
	}()
	t.Cleanup(func() {
		x.net.Heal()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	})
	x.owner = <-ready
	return x
}

func (x *instance) setup(mgr manager.Manager) error {
	err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		term, _ := controllerruntime.Term(ctx)
		x.terms <- term
		x.leaders <- true
		<-ctx.Done()
		x.leaders <- false
		return nil
	}))
	if err != nil {
		return err
	}
	return addGreeter(mgr, namespace)
}

// connect returns an administrator's configuration for connections that go to addr.
func connect(t *testing.T, srv *servers.Server, addr string) *rest.Config {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", srv.Extra["kubeconfig"])
	if err != nil {
		t.Fatal(err)
	}
	config.Host, config.QPS = "https://"+addr, -1
	return config
}

func next[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(2 * time.Minute):
		t.Fatalf("no %s within two minutes", what)
	}
	return v
}

// greeting waits until the ConfigMap is greeted by that replica, and returns it as it is then.
func greeting(t *testing.T, c client.Client, name, by string) *corev1.ConfigMap {
	t.Helper()
	cm := &corev1.ConfigMap{}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, cm); err != nil {
			t.Fatal(err)
		}
		if cm.Data["greeted-by"] == by {
			return cm
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s was not greeted by %s within a minute: %v", name, by, cm.Data)
		}
	}
}

// The leader is cut off, the other replica takes over, and what the first one writes in its old term is refused.
func TestLeaderIsCutOff(t *testing.T) {
	srv := servers.Kubernetes(t)
	direct, err := client.New(connect(t, srv, srv.Addr), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a := launch(t, srv, "a")
	first := next(t, "term of a", a.terms)
	b := launch(t, srv, "b")
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "hello", Labels: map[string]string{"example": "greeting"}}}
	if err := direct.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	greeting(t, direct, "hello", a.owner)
	if !next(t, "runnable for the leader on a", a.leaders) {
		t.Error("it ended before it began")
	}
	late, err := client.New(a.config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a.net.Cut()
	second := next(t, "term of b", b.terms)
	if first.Check() == nil || second.Token <= first.Token {
		t.Errorf("b leads in term %d: the term of a, %d: %v", second.Token, first.Token, first.Check())
	}
	if next(t, "end of the runnable for the leader on a", a.leaders) {
		t.Error("it began again")
	}
	cm := greeting(t, direct, "hello", b.owner)
	a.net.Heal()
	if err := greet(t.Context(), late, first.Sequencer(), cm); !errors.Is(err, fence.ErrStale) {
		t.Errorf("a writes in its old term: %v", err)
	}
	greeting(t, direct, "hello", b.owner)
	b.stop() // it ends in good order: nobody waits for its lease to expire
	third := next(t, "term of a after b has ended", a.terms)
	if third.Token <= second.Token {
		t.Errorf("term %d after %d", third.Token, second.Token)
	}
	greeting(t, direct, "hello", a.owner)
}
