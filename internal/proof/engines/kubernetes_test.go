package engines

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/transport"
	"k8s.io/klog/v2"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/kubernetes"
)

// The elector reports each of its terms on stderr, in the middle of a benchmark's lines.
func init() { klog.SetLogger(klog.New(nil)) }

var kubernetesKind = register(kind{
	name: "kubernetes", start: servers.Kubernetes,
	prepare: func(t testing.TB, srv *servers.Server) instance {
		namespace := theNamespace(t, srv)
		return instance{open: func(t testing.TB, addr string) store.Store {
			st, err := kubernetes.New(kubeClient(t, srv, addr), kubernetes.Options{Namespace: namespace})
			return opened(t, st, err)
		}}
	},
	recipe: &recipe{name: "client-go elector", dial: func(t testing.TB, srv *servers.Server) locker {
		client, namespace := kubeClient(t, srv, srv.Addr), theNamespace(t, srv)
		return func(ctx context.Context, name string) (func() error, error) {
			return elect(ctx, client, namespace, "recipe-"+name)
		}
	}},
	floor: kubernetesFloor,
	erase: func(t testing.TB, srv *servers.Server, name string) error {
		return kubeClient(t, srv, srv.Addr).Leases(theNamespace(t, srv)).Delete(t.Context(), name, metav1.DeleteOptions{})
	},
})

func kubernetesFloor(t testing.TB, srv *servers.Server) locker {
	leases := kubeClient(t, srv, srv.Addr).Leases(theNamespace(t, srv))
	return swapping(func(ctx context.Context, name string, old *coordinationv1.Lease) (*coordinationv1.Lease, error) {
		if old == nil {
			meta := metav1.ObjectMeta{Name: name, Annotations: map[string]string{"floor": floorValue}}
			return leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: meta}, metav1.CreateOptions{})
		}
		next := old.DeepCopy() // it has the resource version; an update that changes nothing isn't written
		holder := rand.Text()
		next.Spec.HolderIdentity = &holder
		return leases.Update(ctx, next, metav1.UpdateOptions{})
	})
}

// elect is an election by client-go with its default timings, until it is won.
func elect(ctx context.Context, client coordination.CoordinationV1Interface, namespace, name string) (func() error, error) {
	ctx, cancel := context.WithCancel(ctx)
	leading, ended := make(chan struct{}), make(chan struct{})
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Client: client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: rand.Text()},
		},
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second, ReleaseOnCancel: true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { close(leading) }, OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		cancel()
		return nil, err
	}
	go func() {
		defer close(ended)
		elector.Run(ctx)
	}()
	stop := func() error {
		cancel()
		<-ended
		return nil
	}
	select {
	case <-leading:
		return stop, nil
	case <-ended:
		return nil, fmt.Errorf("not elected: %w", context.Cause(ctx))
	}
}

// theNamespace makes the namespace that all on one server share, unless it is there.
func theNamespace(t testing.TB, srv *servers.Server) string {
	t.Helper()
	const name = "engines"
	err := kubeClient(t, srv, srv.Addr).RESTClient().Post().AbsPath("/api/v1/namespaces").SetHeader("Content-Type", "application/yaml").
		Body([]byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + "}\n")).Do(t.Context()).Error()
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	return name
}

// kubeClient returns an administrator's client with connections of its own, which go to addr; by what is wrapped around them.
func kubeClient(t testing.TB, srv *servers.Server, addr string, wraps ...transport.WrapperFunc) *coordination.CoordinationV1Client {
	t.Helper()
	c, err := clientcmd.BuildConfigFromFlags("", srv.Extra["kubeconfig"])
	if err != nil {
		t.Fatal(err)
	}
	c.Host, c.QPS = "https://"+addr, -1
	c.Dial = (&net.Dialer{Timeout: 5 * time.Second}).DialContext
	for _, wrap := range wraps {
		c.Wrap(wrap)
	}
	transport, err := kubernetes.TransportFor(c)
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
