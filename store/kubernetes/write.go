package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// Put implements [store.Store]. A new record is a POST. A change is a merge patch with the version,
// so that labels, annotations and owners of others on the object stay. A conflict takes a second
// request, which reads the current record. If that is the same record, because another program has
// labelled the object for instance, the change is sent again.
func (s *Store) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	body, err := driver.Marshal(rec)
	if err != nil {
		return store.Record{}, err
	}
	prev, known := parseVersion(rec.Version)
	for {
		if err := s.ready(ctx); err != nil {
			return store.Record{}, err
		}
		if rec.Version != "" && !known { // no object ever had it
			return store.Record{}, s.beaten(ctx, rec.Key)
		}
		var answer runtime.Object
		verb := "create"
		if rec.Version == "" {
			answer, err = s.create(ctx, rec, string(body))
		} else {
			verb = "patch"
			answer, err = s.patch(ctx, rec, string(body), prev)
		}
		switch {
		case err == nil:
			return s.written(rec.Key, answer)
		case known && isMissing(err):
			return s.shown(rec.Key, store.Record{}, driver.NotFound(rec.Key))
		case !isConflict(err):
			return store.Record{}, s.failed(ctx, rec.Key, verb, err)
		case known:
			prev, err = s.rebase(ctx, rec.Key, verb, prev, err)
		default:
			if err = s.beaten(ctx, rec.Key); errors.Is(err, store.ErrNotFound) {
				err = nil // what was in the way is gone again
			}
		}
		if err != nil {
			return store.Record{}, err
		}
	}
}

// rebase returns the version under which to send a write again that met another version than prev
// but the same record, or why the write is not done.
func (s *Store) rebase(ctx context.Context, key, verb string, prev version, refusal error) (version, error) {
	current, _, err := s.current(ctx, key)
	if err != nil {
		return prev, err
	}
	now, _ := parseVersion(current.Version)
	switch {
	case now.resource == prev.resource: // it is something else that the server minds
		return prev, s.failed(ctx, key, verb, refusal)
	case now.sameRecord(prev):
		return now, nil
	}
	return prev, &store.ConflictError{Current: current}
}

// written reads the record out of the answer to a write.
func (s *Store) written(key string, answer runtime.Object) (store.Record, error) {
	obj, ok := answer.(*coordinationv1.Lease)
	if !ok {
		return store.Record{}, driver.Unknown(key, fmt.Errorf("the server answered with a %T", answer))
	}
	rec, err := read(key, obj)
	if err != nil {
		return store.Record{}, driver.Unknown(key, err)
	}
	return s.shown(key, rec, nil)
}

func (s *Store) create(ctx context.Context, rec store.Record, body string) (runtime.Object, error) {
	spec := s.spec(rec, version{})
	notes := annotations(rec.Key, body, *spec.LeaseTransitions)
	if notes[annotationKey] == "" {
		delete(notes, annotationKey)
	}
	return s.send(ctx, s.rest.Post().Body(&coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.namespace, Name: objectName(rec.Key), Annotations: notes, Labels: labels(rec, false), OwnerReferences: s.owners,
		},
		Spec: spec,
	}))
}

// leasePatch is a merge patch (RFC 7386) of a Lease: null takes a field off, and one that is
// missing is left alone.
type leasePatch struct {
	Metadata struct {
		UID             string             `json:"uid"`
		ResourceVersion string             `json:"resourceVersion"`
		Annotations     map[string]*string `json:"annotations"`
		Labels          map[string]string  `json:"labels,omitempty"`
	} `json:"metadata"`
	Spec struct {
		HolderIdentity       *string           `json:"holderIdentity"`
		LeaseDurationSeconds *int32            `json:"leaseDurationSeconds"`
		AcquireTime          *metav1.MicroTime `json:"acquireTime"`
		RenewTime            *metav1.MicroTime `json:"renewTime"`
		LeaseTransitions     *int32            `json:"leaseTransitions"`
	} `json:"spec"`
}

func (s *Store) patch(ctx context.Context, rec store.Record, body string, prev version) (runtime.Object, error) {
	var p leasePatch
	p.Metadata.UID, p.Metadata.ResourceVersion = prev.uid, prev.resource
	spec := s.spec(rec, prev)
	p.Spec.HolderIdentity, p.Spec.LeaseDurationSeconds, p.Spec.LeaseTransitions = spec.HolderIdentity, spec.LeaseDurationSeconds, spec.LeaseTransitions
	p.Spec.AcquireTime, p.Spec.RenewTime = spec.AcquireTime, spec.RenewTime
	p.Metadata.Labels = labels(rec, !prev.unmanaged)
	p.Metadata.Annotations = map[string]*string{}
	for name, text := range annotations(rec.Key, body, *spec.LeaseTransitions) {
		p.Metadata.Annotations[name] = nil
		if text != "" {
			p.Metadata.Annotations[name] = &text
		}
	}
	b, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	return s.send(ctx, s.rest.Patch(types.MergePatchType).Name(objectName(rec.Key)).Body(b))
}

// send carries out one write, once. client-go would repeat it when the server says to try again
// later (429 and 5xx with Retry-After), and then the last answer doesn't tell what the first
// request did.
func (s *Store) send(ctx context.Context, r *rest.Request) (runtime.Object, error) {
	if limiter := s.rest.GetRateLimiter(); limiter != nil {
		if err := limiter.Wait(ctx); err != nil {
			return nil, &unsentError{err: err, qps: limiter.QPS()}
		}
	}
	return r.Namespace(s.namespace).Resource("leases").MaxRetries(0).Throttle(nil).Do(ctx).Get()
}

// Delete implements [store.Store]. Its conditions are the uid and the resource version. Like a Put
// it is sent again when something else than the record has changed.
func (s *Store) Delete(ctx context.Context, key, ver string) error {
	if err := driver.CheckKey(key); err != nil {
		return err
	}
	prev, known := parseVersion(ver)
	for {
		if err := s.ready(ctx); err != nil {
			return err
		}
		if !known {
			return s.beaten(ctx, key)
		}
		answer, err := s.delete(ctx, key, prev)
		switch obj, kept := answer.(*coordinationv1.Lease); {
		case err == nil && kept && len(obj.Finalizers) > 0:
			return driver.Unknown(key, fmt.Errorf("lease object %s/%s is marked for deletion, and stays until its finalizers %v are taken off: ask their owner to take them off", obj.Namespace, obj.Name, obj.Finalizers))
		case err == nil:
			s.hub.show(key, "")
			return nil
		case isMissing(err):
			s.hub.show(key, "")
			return driver.NotFound(key)
		case !isConflict(err):
			return s.failed(ctx, key, "delete", err)
		}
		if prev, err = s.rebase(ctx, key, "delete", prev, err); err != nil {
			return err
		}
	}
}

func (s *Store) delete(ctx context.Context, key string, prev version) (runtime.Object, error) {
	uid := types.UID(prev.uid)
	return s.send(ctx, s.rest.Delete().Name(objectName(key)).Body(&metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &prev.resource},
	}))
}

// beaten returns why a write is not done that nothing but the absence of a record would have let
// through.
func (s *Store) beaten(ctx context.Context, key string) error {
	current, _, err := s.current(ctx, key)
	if err != nil {
		return err
	}
	return &store.ConflictError{Current: current}
}

// current reads what was in the way of a write, which was not done whatever comes of it.
func (s *Store) current(ctx context.Context, key string) (store.Record, *coordinationv1.Lease, error) {
	rec, obj, err := s.getShown(ctx, key)
	if err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrCorrupt) {
		err = fmt.Errorf("not done, for another write came first, and what it wrote can't be read: %w", err)
	}
	return rec, obj, err
}

// failed returns the error of a write that neither was done nor met another one: not done where
// that is certain, unknown otherwise.
func (s *Store) failed(ctx context.Context, key, verb string, err error) error {
	explained := s.explain(verb, err)
	if ctx.Err() != nil {
		explained = errors.Join(context.Cause(ctx), explained)
	}
	if refused(err) || unsent(err) {
		return fmt.Errorf("%s: %w", key, explained)
	}
	return driver.Unknown(key, explained)
}

// refused reports whether the server answered that it will not carry the request out. What it
// answers with 5xx it may have carried out all the same.
func refused(err error) bool {
	code := statusCode(err)
	return code >= 400 && code < 500 && code != http.StatusRequestTimeout && code != statusClientClosed
}

// statusClientClosed is what some proxies call a request whose client left.
const statusClientClosed = 499
