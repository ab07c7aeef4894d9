package server_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/server"
	"github.com/leasehold/leasehold/store"
)

// afterwards is a store that says nothing more of a name once that was written, until it is let go: what the board reads, and nothing
// that an acquisition needs.
type afterwards struct {
	store.Store
	written *sync.Map
	letGo   chan struct{}
	asked   chan string
}

func (a afterwards) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	rec, err := a.Store.Put(ctx, rec)
	a.written.Store(rec.Key, true)
	return rec, err
}

func (a afterwards) Get(ctx context.Context, key string) (store.Record, error) {
	if _, ok := a.written.Load(key); ok {
		select {
		case a.asked <- key:
		default:
		}
		select {
		case <-a.letGo:
		case <-ctx.Done():
			return store.Record{}, context.Cause(ctx)
		}
	}
	return a.Store.Get(ctx, key)
}

// An acquisition is answered while the board, which wants to know of it, gets no answer from the store.
func TestFinding_V1_AnAcquireDoesNotWaitForTheBoard(t *testing.T) {
	a := afterwards{written: &sync.Map{}, letGo: make(chan struct{}), asked: make(chan string, 1)}
	s := newSiteOn(t, server.Options{}, func(st store.Store) store.Store { a.Store = st; return a })
	w := s.stream(t, "", "")
	w.beat()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // half of what the board would wait
	defer cancel()
	for _, name := range []string{"job", "other"} { // the second while the board is stuck with the first
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/v1/leases/"+name, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := s.Client().Do(req)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err = io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusCreated {
			t.Fatalf("%s: %s %v", name, resp.Status, err)
		}
		_ = resp.Body.Close()
		if name == "job" {
			if asked := <-a.asked; asked != name {
				t.Errorf("the board asked for %s", asked)
			}
		}
	}
	close(a.letGo)
	seen := map[string]bool{}
	for len(seen) < 2 {
		_, e := w.next()
		seen[e.Lease.Name] = true
	}
}

// full puts n held names into the store of a site.
func (s *site) full(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		s.put(t, store.Record{Key: fmt.Sprintf("name-%05d", i), Owner: "worker/abc", Token: 1, TTL: time.Hour, Acquired: time.Unix(1, 0), Info: map[string]string{"host": "a"}})
	}
}

// figure is a figure of /metrics.
func (s *site) figure(t *testing.T, name string) int {
	t.Helper()
	_, rest, ok := strings.Cut(s.scrape(t), "\n"+name+" ")
	text, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseFloat(text, 64)
	if !ok || err != nil {
		t.Fatalf("%s: %q, %v", name, text, err)
	}
	return int(n)
}

// However many watch, the state of a name is encoded once, and the store is looked at once a second.
func TestFinding_V1_EachStateIsEncodedOnce(t *testing.T) {
	const names, watchers = 500, 40
	s := newSite(t, server.Options{})
	s.full(t, names)
	var group sync.WaitGroup
	for i := range watchers {
		query, want := "", names
		if i%4 == 0 {
			query, want = "?prefix=name-000", 100
		}
		w := s.stream(t, query, "")
		group.Go(func() {
			kinds := map[string]int{}
			for kind := ""; kinds["lease"] < want && kind != "end"; kinds[kind]++ {
				kind, _ = w.next()
			}
			if kinds["reset"] != 1 || kinds["lease"] != want {
				t.Errorf("watch%s: %v, want %d leases", query, kinds, want)
			}
		})
	}
	group.Wait()
	if n := s.figure(t, "leasehold_watch_encoded_total"); n != names {
		t.Errorf("%d states were encoded for %d watchers of %d names", n, watchers, names)
	}
	if n := s.figure(t, "leasehold_watch_resets_total"); n != watchers {
		t.Errorf("%d resets for %d watchers", n, watchers)
	}
	s.acquired(t, "name-x", "")
	if n := s.figure(t, "leasehold_watchers"); n != watchers {
		t.Errorf("%d watch, want %d", n, watchers)
	}
}

// Watchers that have gone before there was anything to tell are told nothing, and cost one look together.
func TestFinding_V1_WhoHasGoneIsToldNothing(t *testing.T) {
	s, st := newSlowSite(t)
	s.acquired(t, "a", "")
	release := make(chan struct{})
	st.hold.Store(&release)
	ctx, cancel := context.WithCancel(t.Context())
	for range 30 {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/v1/watch", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := s.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
	}
	<-st.read
	cancel()
	for deadline := time.Now().Add(time.Minute); s.figure(t, "leasehold_watchers") > 0; {
		if time.Now().After(deadline) {
			t.Fatal("the server doesn't notice that they have gone")
		}
	}
	close(release)
	w := s.stream(t, "", "")
	w.next()
	w.lease("a", api.StateHeld)
	w.beat()
	if n := s.figure(t, "leasehold_watch_resets_total"); n != 1 {
		t.Errorf("%d were told everything, and one is there", n)
	}
}

// mute asks for the board, and reads nothing of it.
func (s *site) mute(t *testing.T) {
	t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.(*net.TCPConn).SetReadBuffer(4096)
	if _, err := fmt.Fprintf(conn, "GET /v1/watch HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
}

// Watchers that read nothing keep nobody from anything: not those who acquire, and not other watchers.
func TestFinding_V1_WhoReadsNothingKeepsNobodyWaiting(t *testing.T) {
	const names = 10_000
	s := newSite(t, server.Options{})
	s.full(t, names)
	for range 20 {
		s.mute(t)
	}
	for s.figure(t, "leasehold_watch_resets_total") < 20 {
		time.Sleep(10 * time.Millisecond)
	}
	w := s.stream(t, "", "")
	w.beat()
	s.acquired(t, "job", "")
	w.lease("job", api.StateHeld)
}

// A look at the store that finds nothing new reads no name again, nor encodes one.
func TestFinding_V1_LooksThatFindNothingCostNothing(t *testing.T) {
	s, st := newSlowSite(t)
	for i := range 50 {
		s.acquired(t, "name"+strconv.Itoa(i), "")
	}
	w := s.stream(t, "", "")
	w.beat()
	before, looks := s.figure(t, "leasehold_watch_encoded_total"), st.done.Load()
	for st.done.Load() < looks+3 {
		time.Sleep(10 * time.Millisecond)
	}
	if n := s.figure(t, "leasehold_watch_encoded_total"); n != before {
		t.Errorf("%d states were encoded again", n-before)
	}
}
