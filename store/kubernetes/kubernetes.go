package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

// Options of [New].
type Options struct {
	Namespace string      // where the Lease objects are; required
	Clock     clock.Clock // times renewals, for people, and requests of its own; clock.System() when nil
}

// Store is a store in one namespace of a cluster. It implements [store.Store], [store.Waiter], [store.Describer] and
// [store.Inspector].
type Store struct {
	rest      rest.Interface
	leases    coordination.LeaseInterface
	namespace string
	clock     clock.Clock
	hub       *hub

	closing   chan struct{}
	closeOnce sync.Once
}

var (
	_ store.Store     = (*Store)(nil)
	_ store.Waiter    = (*Store)(nil)
	_ store.Toucher   = (*Store)(nil)
	_ store.Describer = (*Store)(nil)
	_ store.Inspector = (*Store)(nil)
)

// New returns a store in a namespace, which has to exist. The client is clientset.CoordinationV1(), or one made for that group
// alone; it stays the caller's. New makes no request: use Ping to learn whether the server can be reached.
//
// Mind the client's limit on requests: where its rest.Config sets no QPS, client-go lets 5 requests a second through, which is
// enough to renew some twenty leases of 15 s. Set QPS: -1 to leave the matter to the server. And have it speak HTTP/1.1, by
// TLSClientConfig.NextProtos: see "Connections" in the doc of the package.
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
	s.hub = newHub(s)
	return s, nil
}

// Ping returns an error that says what to do when the server can't be reached or trusted, the namespace is missing, or the
// account may not read Leases there. Whether it may write them only a write tells: see Inspect.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	_, err := s.get(ctx, "leasehold")
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrCorrupt) {
		err = nil
	}
	if err == nil || isForbidden(err) { // who has no rights in a namespace is told that whether there is one or not
		look := s.rest.Get().AbsPath("/api/v1/namespaces", s.namespace).Do(ctx).Error()
		if statusCode(look) == http.StatusNotFound { // most accounts may not look
			return s.noNamespace(look)
		}
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
func (s *Store) ready(ctx context.Context) error {
	select {
	case <-s.closing:
		return store.ErrClosed
	default:
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// Close implements [store.Store]. Requests under way go on; the client is left alone.
func (s *Store) Close() error {
	s.closeOnce.Do(func() { close(s.closing) })
	s.hub.close()
	return nil
}
