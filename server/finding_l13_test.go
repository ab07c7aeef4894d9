package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/server"
)

// However many scrape at a time, the store is listed once for all, and not again at once.
func TestFinding_L13_ScrapersShareACount(t *testing.T) {
	s, st := newSlowSite(t)
	s.acquired(t, "a", "")
	s.acquired(t, "b", "")
	release := make(chan struct{})
	st.hold.Store(&release)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if text := s.scrape(t); !strings.Contains(text, "\nleasehold_held{state=\"held\"} 2") && !strings.Contains(text, "\nleasehold_store_up 0") {
				t.Errorf("%s", text)
			}
		})
	}
	<-st.read
	time.Sleep(100 * time.Millisecond) // the others come while it is under way: without a count that is shared each lists for itself
	if n := st.done.Load(); n > 0 {
		t.Errorf("%d counts beside one that is under way", n)
	}
	close(release)
	group.Wait()
	begun, before := time.Now(), st.done.Load()
	for range 20 {
		s.scrape(t)
	}
	if n := st.done.Load() - before; n > 1+int64(time.Since(begun)/time.Second) {
		t.Errorf("20 scrapes within %v listed the store %d times", time.Since(begun), n)
	}
}

// While the store hangs a scrape is answered within 2 s, with what doesn't come from the store.
func TestFinding_L13_AScrapeOfAStoreThatHangs(t *testing.T) {
	s, st := newSlowSite(t)
	release := make(chan struct{})
	st.hold.Store(&release)
	go func() { <-st.read }()
	text := s.scrape(t)
	close(release)
	if !strings.Contains(text, "\nleasehold_store_up 0") || !strings.Contains(text, "\nleasehold_waiters 0") {
		t.Errorf("%s", text)
	}
}

// Where callers have to say who they are, /metrics is for those who may see it; on the operators' address it is for all.
func TestFinding_L13_MetricsHaveARightOfTheirOwn(t *testing.T) {
	authenticate := func(r *http.Request) (server.Caller, error) {
		return permitted{r.Header.Get("Authorization")}, nil
	}
	s := newSite(t, server.Options{Authenticate: authenticate})
	want(t, s.ask(t, "GET", "/metrics", "", nil), http.StatusForbidden)
	want(t, s.ask(t, "GET", "/metrics", "", nil, "Authorization", "read"), http.StatusForbidden)
	for path, h := range map[string]http.Handler{"/metrics with the right": s.srv, "/metrics": s.srv.State(), "/healthz": s.srv.State(), "/readyz": s.srv.State()} {
		path, with, _ := strings.Cut(path, " with the right")
		_ = with
		r := httptest.NewRequest(http.MethodGet, path, nil)
		if h == http.Handler(s.srv) {
			r.Header.Set("Authorization", "metrics")
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	w := httptest.NewRecorder()
	s.srv.State().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/leases", nil))
	if w.Code != http.StatusNotFound {
		t.Errorf("leases, on the operators' address: %d", w.Code)
	}
}

// permitted is a caller who may do one thing.
type permitted struct{ what string }

func (p permitted) Name() string                            { return "somebody" }
func (p permitted) May(action server.Action, _ string) bool { return string(action) == p.what }
