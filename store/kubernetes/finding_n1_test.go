package kubernetes

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apiwatch "k8s.io/apimachinery/pkg/watch"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/internal/enginekit/watcher"
	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store/storetest"
)

// Who follows a record by one Wait after another makes a read and a watch, and no request for what comes after.
func TestFinding_N1_FollowingCostsNoRequests(t *testing.T) {
	t.Parallel()
	srv := servers.Kubernetes(t, servers.Shared())
	var c counter
	s := open(t, dial(t, c.wrap(config(t, srv, srv.Addr))), newNamespace(t, srv))
	writer := other(t, srv, s)
	rec := storetest.MustPut(t, writer, held("k", 1))
	before := int64(0)
	for i := range 20 {
		w := startWait(t, s, "k", rec.Version)
		if i == 0 {
			watching(t, s, "k")
			storetest.Eventually(t, func() error { // nothing is under way
				s.hub.mu.Lock()
				defer s.hub.mu.Unlock()
				if !s.hub.watches["k"].entries["k"].Known {
					return errNoAnswer
				}
				return nil
			})
			before = c.count.Load()
		}
		rec = storetest.MustPut(t, writer, rec)
		woken(t, "a Wait", w, rec.Version)
	}
	if n := c.count.Load() - before; n != 0 {
		t.Errorf("%d requests for 20 changes", n)
	}
}

// gate holds back what a watch brings while it is shut.
type gate struct {
	mu   sync.Mutex
	shut chan struct{} // closed when it is opened; nil while it is open
}

func (g *gate) close() (open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	shut := make(chan struct{})
	g.shut = shut
	return sync.OnceFunc(func() { close(shut) })
}

type gated struct {
	io.ReadCloser
	g *gate
}

func (b gated) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.g.mu.Lock()
	shut := b.g.shut
	b.g.mu.Unlock()
	if shut != nil {
		<-shut
	}
	return n, err
}

// What a watch tells late is older than what the handle has shown meanwhile: no Wait returns that.
func TestFinding_N1_NobodyGetsAnOlderRecordThanHeHasSeen(t *testing.T) {
	t.Parallel()
	srv := servers.Kubernetes(t, servers.Shared())
	for _, begun := range []bool{true, false} {
		t.Run(fmt.Sprint("begun before: ", begun), func(t *testing.T) {
			t.Parallel()
			nothingOlder(t, srv, begun)
		})
	}
}

// nothingOlder has a handle show a record while the watch is held back, to one whose Wait has begun before, or begins then.
func nothingOlder(t *testing.T, srv *servers.Server, begun bool) {
	var g gate
	cfg := config(t, srv, srv.Addr)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			resp, err := next.RoundTrip(r)
			if err == nil && r.URL.Query().Get("watch") != "" {
				resp.Body = gated{resp.Body, &g}
			}
			return resp, err
		})
	})
	s := open(t, dial(t, cfg), newNamespace(t, srv))
	writer := other(t, srv, s)
	first := storetest.MustPut(t, writer, held("k", 1))
	w := startWait(t, s, "k", first.Version)
	watching(t, s, "k")
	second := storetest.MustPut(t, writer, first)
	woken(t, "a Wait", w, second.Version) // the watch brings what comes next
	release := g.close()
	defer release()
	third := storetest.MustPut(t, writer, second)
	fourth := storetest.MustPut(t, writer, third)
	if begun {
		w = startWait(t, s, "k", second.Version)
		joined(t, s, "k", 1)
	}
	if got, err := s.Get(t.Context(), "k"); err != nil || got.Version != fourth.Version {
		t.Fatalf("read %q and %v, want %q", got.Version, err, fourth.Version)
	}
	if begun {
		release()
	} else {
		w = startWait(t, s, "k", second.Version)
	}
	woken(t, "the Wait", w, fourth.Version)
}

// What is in doubt is not taken for the record.
func TestFinding_N1_WhatIsInDoubtIsRead(t *testing.T) {
	object := func(resource string) *coordinationv1.Lease {
		obj := &coordinationv1.Lease{}
		obj.Name, obj.UID, obj.ResourceVersion = "k", "u", resource
		return obj
	}
	at := func(resource string) version { return versionOf(object(resource), true) }
	for name, c := range map[string]struct {
		change func(e *entry, w *waiter)
		told   string
		taken  bool
	}{
		"the next version":                 {func(*entry, *waiter) {}, "8", true},
		"an older one than was read":       {func(e *entry, w *waiter) { e.Shown, w.version = 0, at("5") }, "6", false},
		"an older one than was shown":      {func(e *entry, _ *waiter) { e.Shown = 9 }, "8", false},
		"the one that was shown":           {func(e *entry, _ *waiter) { e.Shown = 8 }, "8", true},
		"an older one than that of a Wait": {func(_ *entry, w *waiter) { w.version = at("9") }, "8", false},
		"a Wait without a version":         {func(_ *entry, w *waiter) { w.version = version{} }, "8", false},
		"nothing is known":                 {func(e *entry, _ *waiter) { e.Known = false }, "8", false},
		"nothing was there":                {func(e *entry, _ *waiter) { e.At = 0 }, "8", false},
		"a version that is no number":      {func(*entry, *waiter) {}, "8a", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := &waiter{version: at("7"), heard: make(chan result, 1)}
			e := &entry{key: "k", Latest: watcher.Latest{Known: true, At: 7, Shown: 7}, waiters: map[*waiter]struct{}{w: {}}}
			c.change(e, w)
			if got := e.take(object(c.told)); got != c.taken || len(w.heard) == 1 != c.taken {
				t.Errorf("taken: %v, heard: %d; want %v", got, len(w.heard), c.taken)
			}
		})
	}
}

// A watch is given up after 20 s of silence. While others of the store are heard, the server's bookmarks are waited for.
func TestFinding_N1_SilenceOfAWatch(t *testing.T) {
	for name, c := range map[string]struct {
		others time.Duration // for how long others are heard
		want   time.Duration
	}{
		"alone":                        {0, silence},
		"others are heard":             {time.Hour, longSilence},
		"others are heard for a while": {30 * time.Second, 30*time.Second + silence},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clk := clocktest.New(0)
				h := &hub{store: &Store{clock: clk}}
				stream := apiwatch.NewFake()
				defer stream.Stop()
				go func() {
					for clk.Now() < clock.Instant(c.others) {
						h.heard.Store(int64(clk.Now()))
						time.Sleep(time.Second)
					}
				}()
				_, ok := h.hear(stream, clk.Now())
				if took := clk.Now().Sub(0); ok || took < c.want-2*time.Second || took > c.want+time.Second {
					t.Errorf("given up: %v, after %v; want %v", !ok, took, c.want)
				}
				time.Sleep(time.Hour) // the others end
			})
		})
	}
}
