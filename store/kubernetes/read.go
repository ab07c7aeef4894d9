package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Get implements [store.Store]. The server answers it from a quorum of its etcd.
func (s *Store) Get(ctx context.Context, key string) (store.Record, error) {
	if err := driver.CheckKey(key); err != nil {
		return store.Record{}, err
	}
	if err := s.ready(ctx); err != nil {
		return store.Record{}, err
	}
	rec, _, err := s.getShown(ctx, key)
	return rec, err
}

// getShown is get for a caller. The object is nil if there is none.
func (s *Store) getShown(ctx context.Context, key string) (store.Record, *coordinationv1.Lease, error) {
	rec, obj, err := s.get(ctx, key)
	rec, err = s.shown(key, rec, err)
	return rec, obj, err
}

// shown takes note of what a caller is shown.
func (s *Store) shown(key string, rec store.Record, err error) (store.Record, error) {
	if err == nil || errors.Is(err, store.ErrNotFound) {
		v, _ := parseVersion(rec.Version)
		s.hub.show(key, v.resource)
	}
	return rec, err
}

// get reads a record, and the object that keeps it.
func (s *Store) get(ctx context.Context, key string) (store.Record, *coordinationv1.Lease, error) {
	obj, err := s.leases.Get(ctx, objectName(key), metav1.GetOptions{})
	switch {
	case err == nil:
		rec, err := read(key, obj)
		return rec, obj, err
	case isMissing(err):
		return store.Record{}, nil, driver.NotFound(key)
	case ctx.Err() != nil:
		err = errors.Join(context.Cause(ctx), err)
	}
	return store.Record{}, nil, fmt.Errorf("%s: %w", key, s.explain("get", err))
}

// page is how many objects List asks for at once.
const page = 200

// List implements [store.Store]. It reads the whole namespace, 200 objects at a time, with the
// state of the call's beginning. Leases of other programs there are records, too. A call may take
// so long that the server has forgotten that state (5 minutes as a rule). Then the rest has the
// state of that later moment.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		if err := driver.CheckPrefix(prefix); err != nil {
			yield(store.Record{}, err)
			return
		}
		opts := metav1.ListOptions{Limit: page}
		for {
			list, err := s.list(ctx, opts)
			if err != nil {
				yield(store.Record{}, err)
				return
			}
			for i := range list.Items {
				rec, err, match := readListed(&list.Items[i], prefix)
				if match && err == nil {
					_, _ = s.shown(rec.Key, rec, nil)
				}
				if match && !yield(rec, err) {
					return
				}
			}
			if opts.Continue = list.Continue; opts.Continue == "" {
				return
			}
		}
	}
}

// list reads a page. Where the state that it belongs to is forgotten, it goes on from that place in
// the present one.
func (s *Store) list(ctx context.Context, opts metav1.ListOptions) (*coordinationv1.LeaseList, error) {
	for {
		if err := s.ready(ctx); err != nil {
			return nil, err
		}
		list, err := s.leases.List(ctx, opts)
		if err == nil {
			return list, nil
		}
		var status apierrors.APIStatus
		if apierrors.IsResourceExpired(err) && errors.As(err, &status) && status.Status().Continue != "" && opts.Continue != status.Status().Continue {
			opts.Continue = status.Status().Continue
			continue
		}
		if ctx.Err() != nil {
			err = errors.Join(context.Cause(ctx), err)
		}
		return nil, s.explain("list", err)
	}
}

// readListed reports whether the object belongs to the prefix, and what there is to yield of it. An
// object that doesn't tell its key belongs to the empty prefix.
func readListed(obj *coordinationv1.Lease, prefix string) (rec store.Record, err error, match bool) { //nolint:revive // rec and err are what is yielded
	key, err := keyOf(obj)
	if err != nil {
		return store.Record{}, driver.Corrupt("lease object "+obj.Namespace+"/"+obj.Name, err), prefix == ""
	}
	if !strings.HasPrefix(key, prefix) {
		return store.Record{}, nil, false
	}
	rec, err = read(key, obj)
	return rec, err, true
}
