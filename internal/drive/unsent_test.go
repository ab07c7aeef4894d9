package drive

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/internal/protocol"
	"github.com/leasehold/leasehold/store"
)

// overHTTP is a store whose writes are requests of an HTTP client.
type overHTTP struct {
	store.Store
	client *http.Client
}

func (o *overHTTP) Put(ctx context.Context, rec store.Record) (store.Record, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPut, "http://store/", nil)
	if err != nil {
		return rec, err
	}
	res, err := o.client.Do(req)
	if err != nil {
		return rec, err
	}
	defer res.Body.Close()
	_, err = io.Copy(io.Discard, res.Body)
	return rec, err
}

// pipes is a listener, and dials it.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	conn, open := <-p
	if !open {
		return nil, net.ErrClosed
	}
	return conn, nil
}

func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	p <- server
	return client, nil
}

// overPipes runs f in virtual time with a runner whose requests are answered by handle, over so many connections at most. It returns how
// many were made.
func overPipes(t *testing.T, connections int, handle http.HandlerFunc, f func(t *testing.T, request func() error)) int {
	t.Helper()
	var dialed atomic.Int64
	synctest.Test(t, func(t *testing.T) {
		network := make(pipes)
		server := &http.Server{Handler: handle}
		var running sync.WaitGroup
		running.Go(func() { _ = server.Serve(network) })
		transport := &http.Transport{MaxConnsPerHost: connections, DialContext: func(ctx context.Context, kind, address string) (net.Conn, error) {
			dialed.Add(1)
			return network.dial(ctx, kind, address)
		}}
		var copies sync.WaitGroup
		r := Runner{
			Store: &overHTTP{client: &http.Client{Transport: transport}}, Clock: clocktest.New(0), HTTP: true,
			Go: func(f func()) bool { copies.Go(f); return true },
		}
		f(t, func() error {
			now := r.Clock.Now()
			_, err := r.Request(t.Context(), protocol.Action{Kind: protocol.Write, Key: "k", Asked: now, Again: now.Add(time.Second), Until: now.Add(time.Minute)}, nil)
			return err
		})
		copies.Wait()
		transport.CloseIdleConnections()
		close(network)
		_ = server.Close()
		running.Wait()
	})
	return int(dialed.Load())
}

// A late copy that still waits for a connection is not sent once the first has been answered: it would have the connection when the next
// renewal needs it.
func TestFinding_L1_AnUnsentCopyLeavesTheConnection(t *testing.T) {
	sent := 0
	slow := func(http.ResponseWriter, *http.Request) {
		sent++
		time.Sleep(5 * time.Second)
	}
	overPipes(t, 1, slow, func(t *testing.T, request func() error) {
		for n := 1; n <= 2; n++ {
			began := time.Now()
			if err := request(); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took != 5*time.Second || sent != n {
				t.Errorf("request %d had its answer after %v, and %d were sent", n, took, sent)
			}
		}
	})
}

// A copy that has been sent is not cut short by the answer to another: that would close its connection, and the next renewals would wait
// for new ones.
func TestFinding_L1_ACopyThatWasSentKeepsItsConnection(t *testing.T) {
	var mu sync.Mutex
	answered, cut := 0, 0
	slow := func(w http.ResponseWriter, req *http.Request) {
		time.Sleep(5 * time.Second)
		_, _ = w.Write(make([]byte, 100_000)) // more than comes with the head
		mu.Lock()
		defer mu.Unlock()
		if answered++; req.Context().Err() != nil {
			cut++
		}
	}
	dialed := overPipes(t, 2, slow, func(t *testing.T, request func() error) {
		for range 2 {
			if err := request(); err != nil {
				t.Error(err)
			}
			time.Sleep(10 * time.Second)
		}
	})
	if answered != 4 || cut != 0 || dialed != 2 {
		t.Errorf("%d copies were answered, %d were cut short, over %d connections; want 4 and none, over 2", answered, cut, dialed)
	}
}
