package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/storetest"
)

// patience is how long a Wait may take for what it should do soon: a watch that died in silence is asked for anew after 20 s.
const patience = silence + watchBegin + 10*time.Second

// waited is what a Wait returned.
type waited struct {
	rec store.Record
	err error
}

// startWait begins a Wait in a goroutine that the test waits for.
func startWait(t *testing.T, s *Store, key, version string) <-chan waited {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context()) // whoever looks at the result has a limit
	result := make(chan waited, 1)
	var running sync.WaitGroup
	running.Go(func() {
		rec, err := s.Wait(ctx, key, version)
		result <- waited{rec, err}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return result
}

// woken checks that the Wait returns that version.
func woken(t *testing.T, what string, w <-chan waited, version string) {
	t.Helper()
	select {
	case got := <-w:
		if got.err != nil || got.rec.Version != version {
			t.Errorf("%s: version %q and %v, want %q", what, got.rec.Version, got.err, version)
		}
	case <-time.After(patience):
		t.Errorf("%s: nothing came for %v", what, patience)
	}
}

// watching waits until the Waits for key have begun: their watch is connected, and each has been given a first read.
func watching(t *testing.T, s *Store, key string) {
	t.Helper()
	begun := func() bool {
		s.hub.mu.Lock()
		defer s.hub.mu.Unlock()
		for _, wt := range s.hub.watches {
			if e := wt.entries[objectName(key)]; e != nil {
				for w := range e.waiters {
					if !w.begun {
						return false
					}
				}
				return wt.connected
			}
		}
		return false
	}
	for deadline := time.Now().Add(patience); !begun(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("nobody watches %s", key)
		}
	}
}

// other returns a second store in the namespace of s, with connections of its own.
func other(t *testing.T, srv *servers.Server, s *Store) *Store {
	t.Helper()
	return open(t, dial(t, config(t, srv, srv.Addr)), s.namespace)
}

// requests counts requests by what they ask for, and changes them.
type requests struct {
	next             http.RoundTripper
	watches, resumed atomic.Int64
	watched          sync.Map // what the watches are of, by their field selectors
	change           atomic.Pointer[func(*http.Request)]
	after            atomic.Pointer[func(*http.Request)]
}

func (r *requests) RoundTrip(req *http.Request) (*http.Response, error) {
	if q := req.URL.Query(); q.Get("watch") != "" {
		r.watched.Store(q.Get("fieldSelector"), true)
		r.watches.Add(1)
		if q.Get("resourceVersion") != "0" {
			r.resumed.Add(1)
		}
	}
	if f := r.change.Load(); f != nil {
		(*f)(req)
	}
	resp, err := r.next.RoundTrip(req)
	if f := r.after.Load(); f != nil {
		(*f)(req)
	}
	return resp, err
}

// counted returns a store in a namespace of its own, whose connections go to addr.
func counted(t *testing.T, srv *servers.Server, addr string) (*Store, *requests) {
	t.Helper()
	r := &requests{}
	c := config(t, srv, addr)
	c.Wrap(func(next http.RoundTripper) http.RoundTripper { r.next = next; return r })
	return open(t, dial(t, c), newNamespace(t, srv)), r
}

// TestWaitsOutliveTheServer: the server is killed and started again; who waits is told of what was written after that.
func TestWaitsOutliveTheServer(t *testing.T) {
	t.Parallel()
	srv := servers.Kubernetes(t)
	s := open(t, dial(t, config(t, srv, srv.Addr)), newNamespace(t, srv))
	rec := storetest.MustPut(t, s, held("k", 1))
	waits := []<-chan waited{startWait(t, s, "k", rec.Version), startWait(t, s, "k", rec.Version), startWait(t, s, "new", "")}
	joined(t, s, "k", 2)
	watching(t, s, "k")
	watching(t, s, "new")
	srv.Kill()
	putUnreachable(t, s, rec)
	srv.Restart()
	if got, err := s.Get(t.Context(), "k"); err != nil || got.Version != rec.Version {
		t.Errorf("after the restart: %q and %v, want %q", got.Version, err, rec.Version)
	}
	rec = storetest.MustPut(t, other(t, srv, s), rec)
	fresh := storetest.MustPut(t, s, held("new", 1))
	woken(t, "a Wait over a restart", waits[0], rec.Version)
	woken(t, "another one", waits[1], rec.Version)
	woken(t, "one for a new key", waits[2], fresh.Version)
}

// putUnreachable writes without a server, until the client has noticed that its connections are dead: a write over one of them is of
// unknown outcome.
func putUnreachable(t *testing.T, s *Store, rec store.Record) {
	t.Helper()
	storetest.Eventually(t, func() error {
		_, err := s.Put(t.Context(), rec)
		switch {
		case err == nil:
			t.Fatal("put without a server: done")
		case !strings.Contains(err.Error(), "does it run"):
			return fmt.Errorf("put without a server: %w", err)
		case errors.Is(err, store.ErrUnknownOutcome):
			t.Errorf("put without a connection: %v", err)
		}
		return nil
	})
}

// TestWaitGoesOnWhereItWas: a watch whose connection broke is resumed. When the server has forgotten that place (410 Gone), all
// that is waited for is read.
func TestWaitGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	srv := servers.Kubernetes(t)
	newNamespace(t, srv)
	srv.Kill() // a server remembers what happened since it was started
	srv.Restart()
	for _, forgotten := range []bool{false, true} {
		for _, deleted := range []bool{false, true} {
			t.Run(fmt.Sprintf("forgotten=%v,deleted=%v", forgotten, deleted), func(t *testing.T) {
				t.Parallel()
				goOn(t, srv, forgotten, deleted)
			})
		}
	}
}

func goOn(t *testing.T, srv *servers.Server, forgotten, deleted bool) {
	network := servers.Proxy(t, srv.Addr)
	s, reqs := counted(t, srv, network.Addr)
	rec := storetest.MustPut(t, s, held("k", 1))
	w := startWait(t, s, "k", rec.Version)
	watching(t, s, "k")
	time.Sleep(1500 * time.Millisecond) // a watch that broke as soon as it had begun is not resumed
	toFirst := func(r *http.Request) {
		if q := r.URL.Query(); q.Get("watch") != "" && q.Get("resourceVersion") != "0" {
			q.Set("resourceVersion", "1") // before it was started
			r.URL.RawQuery = q.Encode()
		}
	}
	if forgotten {
		reqs.change.Store(&toFirst)
	}
	resumed, anew := reqs.resumed.Load(), reqs.watches.Load()-reqs.resumed.Load()
	writer, version := other(t, srv, s), ""
	network.Cut() // while nobody hears
	if deleted {
		if err := writer.Delete(t.Context(), "k", rec.Version); err != nil {
			t.Fatal(err)
		}
	} else {
		version = storetest.MustPut(t, writer, rec).Version
	}
	network.Reset()
	network.Heal()
	woken(t, "a Wait whose watch broke", w, version)
	if reqs.resumed.Load() == resumed {
		t.Error("the watch was not resumed")
	}
	if n := reqs.watches.Load() - reqs.resumed.Load() - anew; (n > 0) != forgotten {
		t.Errorf("the watch was begun anew %d times; forgotten: %v", n, forgotten)
	}
}

// TestReadsThatFailInPassing: who has waited for a while puts up with reads that fail; who has just come is told.
func TestReadsThatFailInPassing(t *testing.T) {
	t.Parallel()
	srv := servers.Kubernetes(t, servers.Shared())
	var c counter
	s := open(t, dial(t, c.wrap(config(t, srv, srv.Addr))), newNamespace(t, srv))
	writer := other(t, srv, s)
	rec := storetest.MustPut(t, writer, held("k", 1))
	old := startWait(t, s, "k", rec.Version)
	watching(t, s, "k")
	var failed atomic.Int64
	failing := func(r *http.Request) (*http.Response, error) {
		if r.URL.Query().Get("watch") == "" {
			failed.Add(1)
			return nil, errors.New("broken")
		}
		return c.next.RoundTrip(r)
	}
	c.answer.Store(&failing)
	if err := writer.Delete(t.Context(), "k", rec.Version); err != nil { // a deletion is always read
		t.Fatal(err)
	}
	for deadline := time.Now().Add(patience); failed.Load() < 2; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nobody reads again")
		}
	}
	fresh := startWait(t, s, "k", "")
	select {
	case got := <-fresh:
		if got.err == nil || !strings.Contains(got.err.Error(), "broken") {
			t.Errorf("a new Wait: %v", got.err)
		}
	case <-time.After(patience):
		t.Error("a new Wait is not told")
	}
	c.answer.Store(nil)
	woken(t, "the Wait from before", old, "")
}

// deaf is a connection that hears nothing any more, without an error, as behind a firewall that has forgotten it.
type deaf struct {
	net.Conn
	gone *atomic.Bool
}

func (d deaf) Read(b []byte) (int, error) {
	for {
		n, err := d.Conn.Read(b)
		if err != nil || !d.gone.Load() {
			return n, err
		}
	}
}

// TestSilentConnection: nothing says that the watch's connection is dead, and yet the Wait is told.
func TestSilentConnection(t *testing.T) {
	t.Parallel()
	srv := servers.Kubernetes(t, servers.Shared())
	c := config(t, srv, srv.Addr)
	var gone atomic.Bool
	var first sync.Once
	dialer := net.Dialer{}
	c.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, addr)
		if err == nil {
			first.Do(func() { conn = deaf{conn, &gone} })
		}
		return conn, err
	}
	s := open(t, dial(t, c), newNamespace(t, srv))
	writer := other(t, srv, s)
	rec := storetest.MustPut(t, writer, held("k", 1))
	w := startWait(t, s, "k", rec.Version) // its watch takes the first connection
	watching(t, s, "k")
	gone.Store(true)
	rec = storetest.MustPut(t, writer, rec)
	woken(t, "a Wait over a connection that died in silence", w, rec.Version)
}

// TestManyNames: a handle has few watches, for however many names it waits.
func TestManyNames(t *testing.T) {
	t.Parallel()
	const names = 30
	srv := servers.Kubernetes(t, servers.Shared())
	s, reqs := counted(t, srv, srv.Addr)
	var waits []<-chan waited
	for i := range names {
		waits = append(waits, startWait(t, s, fmt.Sprint("shard/", i), ""))
	}
	for i := range names {
		watching(t, s, fmt.Sprint("shard/", i))
	}
	writer := other(t, srv, s)
	for i, w := range waits {
		woken(t, fmt.Sprint("shard/", i), w, storetest.MustPut(t, writer, held(fmt.Sprint("shard/", i), 1)).Version)
	}
	few := 0 // each may be asked for several times
	reqs.watched.Range(func(any, any) bool { few++; return true })
	if few > maxNamed+1 {
		t.Errorf("%d watches for %d names, want at most %d", few, names, maxNamed+1)
	}
	// Those that nobody needs any more make room: one more name has a watch of its own again.
	w := startWait(t, s, "one more", "")
	watching(t, s, "one more")
	s.hub.mu.Lock()
	if s.hub.watches[objectName("one more")] == nil {
		t.Error("a name that is waited for alone has no watch of its own")
	}
	s.hub.mu.Unlock()
	woken(t, "one more", w, storetest.MustPut(t, writer, held("one more", 1)).Version)
}

// TestWatchesEnd: some time after the last Wait, nothing is asked of the server any more.
func TestWatchesEnd(t *testing.T) {
	t.Parallel()
	srv := servers.Kubernetes(t, servers.Shared())
	s, _ := counted(t, srv, srv.Addr)
	w := startWait(t, s, "k", "")
	watching(t, s, "k")
	woken(t, "a Wait", w, storetest.MustPut(t, s, held("k", 1)).Version)
	left := 1
	for deadline := time.Now().Add(patience); left > 0 && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		s.hub.mu.Lock()
		left = len(s.hub.watches)
		s.hub.mu.Unlock()
	}
	if left > 0 {
		t.Errorf("%d watches %v after the last Wait", left, patience)
	}
}

// TestNobodyGetsWhatWasReadBefore: a read that was under way when a Wait began may show an older version than the Wait knows.
func TestNobodyGetsWhatWasReadBefore(t *testing.T) {
	t.Parallel()
	srv := servers.Kubernetes(t, servers.Shared())
	s, reqs := counted(t, srv, srv.Addr)
	writer := other(t, srv, s)
	first := storetest.MustPut(t, writer, held("k", 1))
	var once sync.Once
	read, release := make(chan struct{}), make(chan struct{})
	slow := func(r *http.Request) {
		if r.URL.Query().Get("watch") == "" && r.Method == http.MethodGet {
			once.Do(func() { close(read); <-release })
		}
	}
	reqs.after.Store(&slow)
	early := startWait(t, s, "k", first.Version)
	<-read // the first version is on its way
	second := storetest.MustPut(t, writer, first)
	late := startWait(t, s, "k", second.Version)
	joined(t, s, "k", 2)
	close(release)
	woken(t, "a Wait from before the change", early, second.Version)
	third := storetest.MustPut(t, writer, second)
	woken(t, "a Wait from after the change", late, third.Version)
}

// joined waits until so many Waits for key have begun.
func joined(t *testing.T, s *Store, key string, n int) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		s.hub.mu.Lock()
		wt := s.hub.watches[objectName(key)]
		got := 0
		if wt != nil && wt.entries[objectName(key)] != nil {
			got = len(wt.entries[objectName(key)].waiters)
		}
		s.hub.mu.Unlock()
		if got == n {
			return
		}
	}
	t.Fatalf("not %d Waits for %s", n, key)
}

// TestWaitEndsWithTheRight: a server that won't let the account watch any more ends the Wait.
func TestWaitEndsWithTheRight(t *testing.T) {
	t.Parallel()
	srv := servers.Kubernetes(t, servers.Shared())
	user, network := userToken(t, srv), servers.Proxy(t, srv.Addr)
	c := config(t, srv, network.Addr)
	var token atomic.Value
	token.Store(srv.Extra["token"])
	c.BearerToken = ""
	c.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.Header.Set("Authorization", "Bearer "+token.Load().(string))
			return next.RoundTrip(r)
		})
	})
	s := open(t, dial(t, c), newNamespace(t, srv))
	w := startWait(t, s, "k", "")
	watching(t, s, "k")
	token.Store(user)
	network.Reset()
	select {
	case got := <-w:
		if got.err == nil || !strings.Contains(got.err.Error(), "may not watch Leases") || errors.Is(got.err, store.ErrClosed) {
			t.Errorf("%v", got.err)
		}
	case <-time.After(patience):
		t.Error("the Wait goes on")
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
