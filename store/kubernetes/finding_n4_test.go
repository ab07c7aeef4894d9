package kubernetes

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// core returns a client whose connections are closed at the end of the test.
func core(t *testing.T, c *rest.Config) *typedcorev1.CoreV1Client {
	t.Helper()
	hc, err := rest.HTTPClientFor(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(hc.CloseIdleConnections)
	client, err := typedcorev1.NewForConfigAndClient(c, hc)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// TestFinding_N4_EventsAboutALease: an event about the object of a key, by client-go's recorder under the rights that docs/from-client-go.md
// names, is found as kubectl describe looks for it.
func TestFinding_N4_EventsAboutALease(t *testing.T) {
	srv := servers.Kubernetes(t, servers.Shared())
	s, namespace := boundStore(t, srv, "")
	apply(t, srv, "/apis/rbac.authorization.k8s.io/v1/namespaces/"+namespace+"/roles", `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: events}
rules: [{apiGroups: [""], resources: ["events"], verbs: ["create", "patch"]}]
`)
	apply(t, srv, "/apis/rbac.authorization.k8s.io/v1/namespaces/"+namespace+"/rolebindings", `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: events}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: events}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: leasehold}]
`)
	if _, err := s.Lease(t.Context(), "billing"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("before anybody has used the key: %v", err)
	}
	m, err := lease.NewManager(s, lease.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	l, err := m.Acquire(t.Context(), "Shard/17")
	if err != nil {
		t.Fatal(err)
	}

	mine := config(t, srv, srv.Addr)
	mine.BearerToken = userToken(t, srv)
	broadcaster := record.NewBroadcaster(record.WithContext(t.Context()))
	defer broadcaster.Shutdown()
	recorder := broadcaster.NewRecorder(runtime.NewScheme(), corev1.EventSource{Component: "billing-controller"})
	obj, err := s.Lease(t.Context(), l.Name())
	if err != nil {
		t.Fatal(err)
	}
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: core(t, mine).Events(namespace)})
	message := fmt.Sprintf("%s became leader, token %d", m.Holder(), l.Token())
	recorder.Event(obj, corev1.EventTypeNormal, "LeaderElection", message)

	all := core(t, config(t, srv, srv.Addr)).Events(namespace)
	name, kind, uid := objectName(l.Name()), "Lease", string(leaseObject(t, s, l.Name()).UID)
	described := all.GetFieldSelector(&name, &namespace, &kind, &uid)
	storetest.Eventually(t, func() error {
		list, err := all.List(t.Context(), metav1.ListOptions{FieldSelector: described.String()})
		if err != nil {
			return err
		}
		if len(list.Items) != 1 || list.Items[0].Reason != "LeaderElection" || list.Items[0].Message != message {
			return fmt.Errorf("events about the Lease: %+v", list.Items)
		}
		return nil
	})
}
