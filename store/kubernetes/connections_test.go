package kubernetes

import (
	"context"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/internal/proof/stalltest"
)

// api is a server of HTTP/2 that answers after a while, and a client of it whose connections can die in silence.
type api struct {
	client *http.Client
	url    string
	opened atomic.Int64
	slow   atomic.Int64 // nanoseconds, for each answer

	mu    sync.Mutex
	conns []*atomic.Bool // of each: it is dead
}

func newAPI(t testing.TB) *api {
	t.Helper()
	a := &api{}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			t.Errorf("a request came by %s", r.Proto)
		}
		select {
		case <-time.After(time.Duration(a.slow.Load())):
		case <-r.Context().Done():
			return
		}
		if r.URL.Path != "/watch" {
			return
		}
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	transport, err := TransportFor(&rest.Config{Host: srv.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}, Dial: a.dial})
	if err != nil {
		t.Fatal(err)
	}
	a.client, a.url = &http.Client{Transport: transport}, srv.URL
	t.Cleanup(func() {
		a.client.CloseIdleConnections()
		srv.CloseClientConnections()
		srv.Close()
	})
	return a
}

func (a *api) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	a.opened.Add(1)
	a.mu.Lock()
	defer a.mu.Unlock()
	dead := new(atomic.Bool)
	a.conns = append(a.conns, dead)
	return deaf{conn, dead}, nil
}

// die ends all connections, without a word.
func (a *api) die() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, dead := range a.conns {
		dead.Store(true)
	}
}

// get sends a request that is given up after a while, and with it what is left of its answer.
func (a *api) get(t testing.TB, path string, patience time.Duration) (*http.Response, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url+path, nil)
	if err != nil {
		return nil, err
	}
	return a.client.Do(req)
}

// Requests share a connection for as long as it answers.
func TestRequestsShareAConnection(t *testing.T) { stalltest.Run(t, requestsShareAConnection) }

func requestsShareAConnection(t testing.TB) {
	a := newAPI(t)
	for _, n := range []int{1, 20, 20} {
		var group sync.WaitGroup
		for range n {
			group.Go(func() {
				if res, err := a.get(t, "/", time.Minute); err != nil {
					t.Error(err)
				} else {
					_ = res.Body.Close()
				}
			})
		}
		group.Wait()
	}
	if n := a.opened.Load(); n != 1 {
		t.Errorf("41 requests took %d connections", n)
	}
}

// When every connection has died in silence, a request that is sent again soon finds one that answers, and the next ones find it at once.
func TestFinding_L1_ConnectionsThatDiedInSilence(t *testing.T) {
	stalltest.Run(t, connectionsThatDiedInSilence)
}

func connectionsThatDiedInSilence(t testing.TB) {
	for _, known := range []int{1, 2} {
		a := newAPI(t)
		a.slow.Store(int64(2 * overdue))
		var hanging sync.WaitGroup
		for range known { // the second one opens another connection
			hanging.Go(func() {
				if res, err := a.get(t, "/", time.Minute); err == nil {
					_ = res.Body.Close()
				}
			})
			time.Sleep(overdue * 3 / 2)
		}
		hanging.Wait()
		a.slow.Store(0)
		before := a.opened.Load()
		a.die()
		tries := 0
		for begun := time.Now(); ; tries++ {
			if res, err := a.get(t, "/", overdue*3/2); err == nil {
				_ = res.Body.Close()
				break
			}
			if time.Since(begun) > 10*time.Second {
				t.Fatalf("no answer by any connection")
			}
		}
		if tries > int(before) {
			t.Errorf("with %d dead connections it took %d requests until one was answered", before, tries+1)
		}
		for range 5 {
			if res, err := a.get(t, "/", overdue); err != nil {
				t.Errorf("a request went to a connection that is suspect: %v", err)
			} else {
				_ = res.Body.Close()
			}
		}
	}
}

// A watch that was given up for its silence isn't asked for anew on the same connection.
func TestFinding_L1_AWatchThatDiedInSilence(t *testing.T) {
	a := newAPI(t)
	res, err := a.get(t, "/watch", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	a.die()
	time.Sleep(overdue * 3 / 2)
	_ = res.Body.Close()
	if res, err := a.get(t, "/watch", 5*time.Second); err != nil {
		t.Error(err)
	} else {
		_ = res.Body.Close()
	}
	if n := a.opened.Load(); n != 2 {
		t.Errorf("%d connections were opened, want 2", n)
	}
}

// Of the copies of a request whose connection died in silence, one finds another, while the first still waits.
func TestFinding_L1_ACopyFindsAConnection(t *testing.T) {
	a := newAPI(t)
	res, err := a.get(t, "/", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	a.die()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answers := make(chan error, 3)
	var copies sync.WaitGroup
	for range cap(answers) {
		copies.Go(func() {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.url, nil)
			if err == nil {
				var res *http.Response
				if res, err = a.client.Do(req); err == nil {
					_ = res.Body.Close()
				}
			}
			answers <- err
		})
		time.Sleep(overdue * 3 / 2)
	}
	select {
	case err := <-answers:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(2 * time.Minute):
		t.Error("no copy was answered")
	}
	cancel()
	copies.Wait()
}

// far is a network on which each answer takes a while, and the first one on a connection three times as long.
type far struct {
	latency *atomic.Int64
	mu      sync.Mutex
	opened  bool
}

func (f *far) RoundTrip(req *http.Request) (*http.Response, error) {
	f.mu.Lock()
	d := time.Duration(f.latency.Load())
	if !f.opened {
		d, f.opened = 3*d, true
	}
	f.mu.Unlock()
	select {
	case <-time.After(d):
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
}

func (f *far) CloseIdleConnections() {}

// When the network becomes slow, other connections are opened, and no request waits for one: each is answered as soon as the network allows.
func TestFinding_L1_ALateConnectionIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slow = 4900 * time.Millisecond
		var latency atomic.Int64
		l := &lanes{clock: clocktest.New(0)}
		for range maxLanes {
			l.all = append(l.all, &lane{transport: &far{latency: &latency}})
		}
		defer l.CloseIdleConnections()
		var requests sync.WaitGroup
		for n := range 100 {
			if n == 10 {
				latency.Store(int64(slow))
			}
			requests.Go(func() {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://api.example/apis", nil)
				if err != nil {
					t.Error(err)
					return
				}
				begun := time.Now()
				res, err := l.RoundTrip(req)
				if took := time.Since(begun); err != nil || took > slow {
					t.Errorf("request %d took %v: %v", n, took, err)
					return
				}
				_ = res.Body.Close()
			})
			time.Sleep(overdue * time.Duration(1+n%5) / 2)
		}
		requests.Wait()
		if l.used < 2 {
			t.Error("no other connection was opened")
		}
	})
}

// A request doesn't wait for a connection that is being opened while another one answers, however late.
func TestFinding_L1_ALateConnectionIsBetterThanANewOne(t *testing.T) {
	now := clock.Instant(time.Hour)
	sent := func(ago time.Duration) map[*http.Request]clock.Instant {
		return map[*http.Request]clock.Instant{{}: now.Add(-ago)}
	}
	network := &far{latency: &atomic.Int64{}}
	late := &lane{transport: network, known: true, waiting: sent(overdue), sent: now}
	opened := &lane{transport: network, waiting: sent(overdue), sent: now.Add(-overdue)}
	l := &lanes{clock: clocktest.New(now), all: []*lane{late, opened, {transport: network}}, used: 2}
	defer l.CloseIdleConnections()
	for range 3 { // after its last answer
		if l.take(&http.Request{URL: &url.URL{Scheme: "https", Host: "api.example"}}) != late {
			t.Error("it waits for a connection that has never answered")
		}
	}
}

// A connection that is being opened beside a late one is given up when its owner closes what is idle, and after a while by itself.
func TestAConnectionThatIsNotOpenedIsGivenUp(t *testing.T) {
	for _, closed := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var never atomic.Int64
			never.Store(int64(time.Hour))
			network := &far{latency: &never}
			now := clock.Instant(time.Hour)
			busy := &lane{transport: network, known: true, waiting: map[*http.Request]clock.Instant{{}: now.Add(-overdue)}}
			l := &lanes{clock: clocktest.New(now), all: []*lane{busy, {transport: network}}, used: 1, opened: now.Add(-time.Minute)}
			l.take(&http.Request{URL: &url.URL{Scheme: "https", Host: "api.example"}})
			begun := time.Now()
			if closed {
				l.CloseIdleConnections()
			} else {
				time.Sleep(beside + time.Millisecond)
			}
			synctest.Wait()
			if took := time.Since(begun); closed && took > 0 || len(l.all[1].waiting) != 0 {
				t.Errorf("%d requests wait %v later", len(l.all[1].waiting), took)
			}
			l.CloseIdleConnections()
		})
	}
}
