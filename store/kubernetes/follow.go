package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/store"
)

// A watch is asked for anew every 10 s, from where it was. So a connection that died without a word is noticed soon, even if
// nothing but the watch uses it; and a watch that nobody needs any more ends by itself.
const (
	watchFor   = 10 * time.Second
	watchGrace = 3 * time.Second // for the server, to end it by itself
)

// The pauses after a watch that failed.
const (
	retryMin = 50 * time.Millisecond
	retryMax = 5 * time.Second
)

// follow keeps wt going as long as somebody waits.
func (h *hub) follow(ctx context.Context, wt *watch) {
	from, connected, pause := "", false, retryMin
	for !h.retire(wt) {
		next, err := h.followOnce(ctx, wt, from, &connected)
		switch {
		case ctx.Err() != nil:
			h.fail(wt, store.ErrClosed)
			return
		case err == nil:
			from, pause = next, retryMin
			continue
		case !connected || !mayPass(err):
			h.fail(wt, fmt.Errorf("%s: %w", wt.what(), h.store.explain("watch", err)))
			return
		}
		from = ""
		_ = clock.Sleep(ctx, h.store.clock, pause-rand.N(pause/2)) // its error is ctx's
		pause = min(2*pause, retryMax)
	}
}

func (wt *watch) what() string {
	if wt.name == "" {
		return "all Leases"
	}
	return "Lease " + wt.name
}

// mayPass reports whether what failed is worth trying again. It is not when the server refused, unless the place where a watch
// was to begin is forgotten, or the server is busy.
func mayPass(err error) bool {
	code := statusCode(err)
	return !errors.Is(err, store.ErrCorrupt) && (!refused(err) || code == http.StatusGone || code == http.StatusTooManyRequests)
}

// errShort is the error of a watch that ended as soon as it had begun.
var errShort = errors.New("the watch ended at once")

// followOnce watches until the watch ends, and returns where to go on: "" for anew, with whatever is there.
func (h *hub) followOnce(ctx context.Context, wt *watch, from string, connected *bool) (string, error) {
	ctx, cancel := clock.WithTimeout(ctx, h.store.clock, watchFor+watchGrace)
	defer cancel()
	begin := h.store.clock.Now()
	stream, err := h.store.watch(ctx, wt.name, from)
	if err != nil {
		return "", err
	}
	defer end(stream)
	*connected = true
	h.begun(wt, from != "")
	for e := range stream.ResultChan() {
		if e.Type == apiwatch.Error {
			return "", apierrors.FromObject(e.Object)
		}
		obj, ok := e.Object.(*coordinationv1.Lease)
		if !ok {
			return "", fmt.Errorf("the server sent a %T", e.Object)
		}
		from = obj.ResourceVersion
		if e.Type != apiwatch.Bookmark {
			h.told(wt, obj.Name, obj.ResourceVersion, e.Type == apiwatch.Deleted)
		}
	}
	if h.store.clock.Now().Sub(begin) < time.Second {
		return "", errShort
	}
	return from, nil
}

// watch returns when the server has begun to serve the watch. Asked from "", it begins with what some server of the cluster
// knows, which may be old; all that came later follows.
func (s *Store) watch(ctx context.Context, name, from string) (apiwatch.Interface, error) {
	seconds := int64(watchFor / time.Second)
	opts := metav1.ListOptions{Watch: true, AllowWatchBookmarks: true, ResourceVersion: from, TimeoutSeconds: &seconds}
	if from == "" {
		opts.ResourceVersion = "0"
	}
	if name != "" {
		opts.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	}
	return s.rest.Get().Namespace(s.namespace).Resource("leases").VersionedParams(&opts, scheme.ParameterCodec).
		MaxRetries(0).Watch(ctx)
}

// end stops a watch and waits until its goroutine has ended.
func end(stream apiwatch.Interface) {
	stream.Stop()
	for range stream.ResultChan() {
		continue
	}
}
