package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/enginekit/watcher"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Options of [New].
type Options struct {
	Namespace string // where the Lease objects are; required
	// Times renewals, for people, and requests of its own; clock.System() when nil.
	Clock clock.Clock

	// Owner, if set, owns the Leases that this store creates. When the owner is deleted,
	// Kubernetes' garbage collector deletes them, held or not. So it has to outlive each holder: a
	// Deployment, for instance, whose pods alone use the names.
	//
	// A holder whose Lease is deleted ends its term within TTL/3. A successor that starts before
	// that works at the same time, and only the token tells the two apart. A deleted record forgets
	// the token: the next one is the time of day. Existing Leases keep their owners.
	Owner *metav1.OwnerReference
}

// Store is a store in one namespace of a cluster. It implements [store.Store], [store.Waiter],
// [store.Describer] and [driver.Inspector].
type Store struct {
	rest      rest.Interface
	leases    coordination.LeaseInterface
	namespace string
	clock     clock.Clock
	owners    []metav1.OwnerReference // of the Leases that it makes: one, or none
	hub       *hub

	closing   chan struct{}
	closeOnce sync.Once
}

var (
	_ store.Store      = (*Store)(nil)
	_ store.Waiter     = (*Store)(nil)
	_ driver.Toucher   = (*Store)(nil)
	_ store.Describer  = (*Store)(nil)
	_ driver.Inspector = (*Store)(nil)
)

// New returns a store in a namespace, which has to exist. The client is that of [Client], or
// clientset.CoordinationV1(). It stays the caller's. New makes no request: use Ping to learn
// whether the server can be reached.
//
// Mind the limit on requests of another client. Where its rest.Config sets no QPS, client-go allows
// 5 requests a second, which is enough to renew some twenty leases of 15 s. Set QPS: -1 to leave
// the limit to the server. Also, all its requests depend on one connection: see "Connections" in
// the doc of the package.
func New(client coordination.CoordinationV1Interface, opts Options) (*Store, error) {
	if opts.Namespace == "" {
		return nil, fmt.Errorf(`namespace "": want the name of the namespace that is to keep the leases`)
	}
	if wrong := validation.IsDNS1123Label(opts.Namespace); len(wrong) > 0 {
		return nil, fmt.Errorf("namespace %.80q: want the name of a namespace: %s", opts.Namespace, strings.Join(wrong, "; "))
	}
	if isNil(client) || isNil(client.RESTClient()) {
		return nil, fmt.Errorf("client: want one that talks to a server, as made by NewForConfig, and not nil or a fake")
	}
	s := &Store{
		rest: client.RESTClient(), leases: client.Leases(opts.Namespace), namespace: opts.Namespace, clock: opts.Clock,
		closing: make(chan struct{}),
	}
	if s.clock == nil {
		s.clock = clock.System()
	}
	if opts.Owner != nil {
		if err := checkOwner(*opts.Owner); err != nil {
			return nil, err
		}
		s.owners = []metav1.OwnerReference{*opts.Owner}
	}
	s.hub = newHub(s)
	return s, nil
}

// Ping returns an error when the server can't be reached or trusted, the namespace or the owner is
// missing, or the account may not read Leases there. The error says what to do. Ping doesn't check
// whether the account may write Leases: see Inspect.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	_, _, err := s.get(ctx, "leasehold")
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrCorrupt) {
		err = nil
	}
	// Who has no rights in a namespace is told that whether there is one or not.
	if err == nil || isForbidden(err) {
		look := s.rest.Get().AbsPath("/api/v1/namespaces", s.namespace).Do(ctx).Error()
		if statusCode(look) == http.StatusNotFound { // most accounts may not look
			return s.noNamespace(look)
		}
	}
	if err == nil {
		err = s.lookForOwner(ctx)
	}
	return err
}

// isNil sees through an interface that holds a nil pointer, as a fake client's does.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}

// ready returns why no operation may begin.
func (s *Store) ready(ctx context.Context) error { return watcher.Ready(ctx, s.closing) }

// Close implements [store.Store]. Running requests continue, and the client stays open.
func (s *Store) Close() error {
	s.closeOnce.Do(func() { close(s.closing) })
	s.hub.close()
	return nil
}
