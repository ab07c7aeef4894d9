package fencekubernetes

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/leasehold/leasehold/fence"
)

// Annotation holds the mark of a guarded object: {"token":42,"holder":"web-1"}.
const Annotation = "leasehold.dev/fence"

// Stamp puts the mark of s on obj, if the mark that is there admits s. Otherwise it returns a
// *[fence.StaleError] and leaves obj as it is. It does no I/O.
//
// The resource version makes that safe. obj must have been read, from the server or from a cache.
// It must be written by a full update that keeps the resource version of that read, or by a
// server-side apply whose configuration has that resource version and the annotation. When the
// server answers with a conflict, another client has written: read the object again, and stamp
// that. A write to the status subresource stores no annotation, so it doesn't raise the mark: use
// [Patch].
func Stamp(obj metav1.Object, s fence.Sequencer) error {
	if obj.GetResourceVersion() == "" {
		return fmt.Errorf("%s: object %s has no resource version: stamp one that was read, for without it an update overwrites whatever is there",
			s.Name, obj.GetName())
	}
	if _, err := judge(obj, s); err != nil {
		return err
	}
	put(obj, encode(s))
	return nil
}

func put(obj metav1.Object, mark string) {
	all := map[string]string{}
	for k, v := range obj.GetAnnotations() {
		all[k] = v
	}
	all[Annotation] = mark
	obj.SetAnnotations(all)
}

// encode returns the one text of the mark of s.
func encode(s fence.Sequencer) string {
	text, err := json.Marshal(fence.Mark{Token: s.Token, Holder: s.Holder})
	if err != nil { // nothing that consists of a string and a number
		return ""
	}
	return string(text)
}

// judge returns why the mark on obj refuses s, or nil, and whether the mark is that of s already,
// to the letter.
func judge(obj metav1.Object, s fence.Sequencer) (mine bool, err error) {
	if err := s.Valid(); err != nil {
		return false, err
	}
	var mark fence.Mark
	text, there := obj.GetAnnotations()[Annotation]
	if there {
		if err := json.Unmarshal([]byte(text), &mark); err != nil || mark.Token == 0 || mark.Token > fence.MaxToken {
			return false, fmt.Errorf("%s: the annotation %s of %s is no mark: %.100q: find out who wrote it, and put back {\"token\":…,\"holder\":…}",
				s.Name, Annotation, obj.GetName(), text)
		}
	}
	_, err = mark.Admit(s.Name, s.Holder, s.Token)
	return text == encode(s), err
}

// Client is what [Update] uses of a client-go client for objects of one kind in one namespace, such
// as clientset.CoreV1().ConfigMaps("shop").
type Client[T metav1.Object] interface {
	Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error)
	Update(ctx context.Context, obj T, opts metav1.UpdateOptions) (T, error)
}

// Update reads the object of that name and calls change on it. It writes the object if its mark
// admits s, and returns what was stored. When another client has written in between, it restarts.
// So change may be called several times, each time with the object as it was just read. Update
// returns an error of change without a write. It blocks until the server has answered, or ctx is
// done. After an error of a write the object may have been written.
func Update[T metav1.Object](ctx context.Context, client Client[T], s fence.Sequencer, name string, change func(T) error) (stored T, err error) {
	if err := s.Valid(); err != nil {
		return stored, err
	}
	for {
		obj, err := client.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return stored, err
		}
		if _, err := judge(obj, s); err != nil {
			return stored, err
		}
		version := obj.GetResourceVersion()
		if err := change(obj); err != nil {
			return stored, err
		}
		obj.SetResourceVersion(version)
		put(obj, encode(s))
		stored, err := client.Update(ctx, obj, metav1.UpdateOptions{})
		if !again(ctx, err) {
			return stored, err
		}
	}
}

// again reports whether err is a conflict, after which others have made progress, and ctx goes on.
func again(ctx context.Context, err error) bool {
	return apierrors.IsConflict(err) && ctx.Err() == nil
}
