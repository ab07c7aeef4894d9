package fencekubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/leasehold/leasehold/fence"
)

// Patcher is what [Patch] uses of a client-go client for objects of one kind in one namespace, such
// as clientset.AppsV1().Deployments("shop").
type Patcher[T metav1.Object] interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error)
	Patch(ctx context.Context, name string, kind types.PatchType, patch []byte, opts metav1.PatchOptions, subresources ...string) (T, error)
}

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value string `json:"value"`
}

// test is what the server tests before the caller's operations, and after them: they mustn't take
// the mark away.
func test(s fence.Sequencer) (json.RawMessage, error) {
	return json.Marshal(operation{"test", "/metadata/annotations/leasehold.dev~1fence", encode(s)})
}

// Patch does a JSON patch on the object of that name or one of its subresources, if the mark of the
// object admits s, and returns what was stored. operations is the list of the patch. It is one
// request. For the first of a new token, three more requests write the mark. The mark may be
// written even if the patch is not done.
//
// When the server refuses the caller's operations, the error is the server's own, after four
// requests. Patch blocks until the server has answered, or ctx is done. After an error that isn't
// an answer of the server the patch may have been done.
func Patch[T metav1.Object](ctx context.Context, client Patcher[T], s fence.Sequencer, name string, operations []byte, subresources ...string) (stored T, err error) {
	patch, err := guarded(s, operations)
	if err != nil {
		return stored, err
	}
	for mine := false; ; {
		stored, err = client.Patch(ctx, name, types.JSONPatchType, patch, metav1.PatchOptions{}, subresources...)
		switch {
		case again(ctx, err):
		case !apierrors.IsInvalid(err): // which a test that failed is
			return stored, err
		default:
			before := mine
			var reason error
			if mine, reason = raise(ctx, client, s, name); reason != nil {
				return stored, reason
			}
			if before && mine { // and all the time in between: marks don't fall
				return stored, err
			}
		}
	}
}

// guarded returns the caller's operations between ours.
func guarded(s fence.Sequencer, operations []byte) ([]byte, error) {
	if err := s.Valid(); err != nil {
		return nil, err
	}
	var list []json.RawMessage
	if err := json.Unmarshal(operations, &list); err != nil {
		return nil, fmt.Errorf("%s: the patch is no list of JSON patch operations: %w", s.Name, err)
	}
	ours, err := test(s)
	if err != nil {
		return nil, err
	}
	return json.Marshal(slices.Concat([]json.RawMessage{ours}, list, []json.RawMessage{ours}))
}

// raise makes the mark of the object that of s, if it admits s. It reports whether the mark is that
// of s now: not when somebody else wrote meanwhile.
func raise[T metav1.Object](ctx context.Context, client Patcher[T], s fence.Sequencer, name string) (mine bool, err error) {
	obj, err := client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return false, err
	}
	if mine, err = judge(obj, s); mine || err != nil {
		return mine, err
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": obj.GetResourceVersion(), "annotations": map[string]string{Annotation: encode(s)},
	}})
	if err != nil {
		return false, err
	}
	_, err = client.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if again(ctx, err) {
		return false, nil
	}
	return err == nil, err
}
