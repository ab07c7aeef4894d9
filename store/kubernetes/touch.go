package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// touchPatch is a merge patch that renews a Lease for readers of its specification, and leaves the
// record alone.
type touchPatch struct {
	Metadata struct {
		UID             string            `json:"uid"`
		ResourceVersion string            `json:"resourceVersion"`
		Annotations     map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		HolderIdentity       string            `json:"holderIdentity"`
		LeaseDurationSeconds int32             `json:"leaseDurationSeconds"`
		RenewTime            *metav1.MicroTime `json:"renewTime"`
	} `json:"spec"`
}

// Touch implements [driver.Toucher]. It sets renewTime to now, leaseDurationSeconds to the record's
// own TTL, and holderIdentity to its owner, in case an elector has removed that. It is one request,
// two where it meets another version.
func (s *Store) Touch(ctx context.Context, rec store.Record, nonce string) (store.Record, error) {
	if err := driver.Check(rec); err != nil {
		return store.Record{}, err
	}
	if err := s.ready(ctx); err != nil {
		return store.Record{}, err
	}
	prev, known := parseVersion(rec.Version)
	if !known {
		return store.Record{}, s.beaten(ctx, rec.Key)
	}
	body, err := s.touch(rec, prev, nonce)
	if err != nil {
		return store.Record{}, err
	}
	answer, err := s.send(ctx, s.rest.Patch(types.MergePatchType).Name(objectName(rec.Key)).Body(body))
	switch {
	case err == nil:
		return s.written(rec.Key, answer)
	case isMissing(err):
		return s.shown(rec.Key, store.Record{}, driver.NotFound(rec.Key))
	case isConflict(err):
		return s.overtaken(ctx, rec, prev, nonce, err)
	}
	return store.Record{}, s.failed(ctx, rec.Key, "patch", err)
}

// overtaken returns what came of a Touch that met another version than prev. It is done if a copy
// of it was, and no elector has written since. It is not sent again by itself: a copy that comes
// late would leave a version that the next Touch doesn't know.
func (s *Store) overtaken(ctx context.Context, rec store.Record, prev version, nonce string, refusal error) (store.Record, error) {
	current, obj, err := s.current(ctx, rec.Key)
	if err != nil {
		return store.Record{}, err
	}
	now, _ := parseVersion(current.Version)
	switch {
	case now.resource == prev.resource: // it is something else that the server minds
		return store.Record{}, s.failed(ctx, rec.Key, "patch", refusal)
	case nonce != "" && obj.Annotations[annotationTouch] == nonce && now.sameRecord(prev) && now.holder == hash(rec.Owner):
		return current, nil
	}
	return store.Record{}, &store.ConflictError{Current: current}
}

func (s *Store) touch(rec store.Record, prev version, nonce string) ([]byte, error) {
	var p touchPatch
	wall := s.clock.Wall().UTC().Truncate(time.Microsecond)
	if rec.TTL >= often {
		wall = renewTime(wall, prev.second)
	}
	renewed := metav1.NewMicroTime(wall)
	p.Metadata.UID, p.Metadata.ResourceVersion = prev.uid, prev.resource
	p.Metadata.Annotations = map[string]string{annotationTouch: nonce}
	p.Spec.HolderIdentity, p.Spec.LeaseDurationSeconds, p.Spec.RenewTime = rec.Owner, wholeSeconds(rec.TTL), &renewed
	body, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("%s: write the patch: %w", rec.Key, err)
	}
	return body, nil
}
