package kubernetes

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leasehold/leasehold/store/driver"
)

// Lease returns the object that keeps a key, as the subject of a Kubernetes event: pass it to
// client-go's recorder. It is one read. The error matches [store.ErrNotFound] when the key was
// never used.
func (s *Store) Lease(ctx context.Context, key string) (*coordinationv1.Lease, error) {
	if err := driver.CheckKey(key); err != nil {
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	obj, err := s.leases.Get(ctx, objectName(key), metav1.GetOptions{})
	switch {
	case isMissing(err):
		return nil, driver.NotFound(key)
	case err != nil:
		return nil, fmt.Errorf("%s: %w", key, s.explain("get", err))
	}
	// Which the client leaves out.
	obj.APIVersion, obj.Kind = coordinationv1.SchemeGroupVersion.String(), "Lease"
	return obj, nil
}
