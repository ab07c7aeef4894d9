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

// A watch is asked for again, from where it was, when nothing was heard for silence, neither of it
// nor of another one of the store; or nothing of it for longSilence, in which the server sends a
// bookmark at the least. So a connection that died without a word is noticed soon, even if nothing
// but the watch uses it, and a watch that nobody needs any more ends by itself. Of what is renewed,
// which is most of what is waited for, something is heard more often.
const (
	watchFor    = 10 * time.Minute
	silence     = 20 * time.Second
	longSilence = 75 * time.Second
	watchBegin  = 10 * time.Second // for the server to answer
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

// mayPass reports whether what failed is worth trying again. It is not when the server refused,
// unless the place where a watch was to begin is forgotten, or the server is busy.
func mayPass(err error) bool {
	code := statusCode(err)
	return !errors.Is(err, store.ErrCorrupt) && (!refused(err) || code == http.StatusGone || code == http.StatusTooManyRequests)
}

// errShort is the error of a watch that ended as soon as it had begun.
var errShort = errors.New("the watch ended at once")

// errNoAnswer is the error of a watch that the server doesn't begin.
var errNoAnswer = fmt.Errorf("no answer for %v", watchBegin)

// followOnce watches until the watch ends, and returns where to go on: "" for anew, with whatever
// is there.
func (h *hub) followOnce(ctx context.Context, wt *watch, from string, connected *bool) (string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	begin := h.store.clock.Now()
	limit := clock.At(h.store.clock, begin.Add(watchBegin), func() { cancel(errNoAnswer) })
	stream, err := h.store.watch(ctx, wt.name, from)
	inTime := limit()
	if err == nil && !inTime {
		end(stream)
	}
	if !inTime {
		err = errNoAnswer
	}
	if err != nil {
		return "", err
	}
	defer end(stream)
	*connected = true
	h.begun(wt, from != "")
	defer h.lapsed(wt)
	for looked, heard := begin, h.store.clock.Now(); ; heard = h.store.clock.Now() {
		h.heard.Store(int64(heard))
		e, ok := h.hear(stream, heard)
		switch obj, isLease := e.Object.(*coordinationv1.Lease); {
		case !ok:
			if h.store.clock.Now().Sub(begin) < time.Second {
				return "", errShort
			}
			return from, nil
		case e.Type == apiwatch.Error:
			return "", apierrors.FromObject(e.Object)
		case !isLease:
			return "", fmt.Errorf("the server sent a %T", e.Object)
		default:
			from = obj.ResourceVersion
			if e.Type != apiwatch.Bookmark {
				h.told(wt, obj, e.Type == apiwatch.Deleted)
			}
		}
		if now := h.store.clock.Now(); now >= looked.Add(idle) {
			if looked = now; h.retire(wt) {
				return from, nil
			}
		}
	}
}

// hear returns the next event of a watch, of which something was heard last at heard. It reports
// false when the watch has ended, or is silent.
func (h *hub) hear(stream apiwatch.Interface, heard clock.Instant) (e apiwatch.Event, ok bool) {
	for {
		now := h.store.clock.Now()
		due := min(clock.Instant(h.heard.Load()).Add(silence), heard.Add(longSilence))
		if now >= due {
			return e, false
		}
		timer := clock.NewTimer(h.store.clock, due.Sub(now))
		select {
		case e, ok = <-stream.ResultChan():
			timer.Stop()
			return e, ok
		case <-timer.C:
		}
	}
}

// watch returns when the server has begun to serve the watch. Asked from "", it begins with what
// some server of the cluster knows, which may be old; all that came later follows.
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
