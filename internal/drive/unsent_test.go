package drive

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/internal/rules"
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

// A late copy that still waits for a connection is not sent once the first has been answered: it would have the connection when the next
// renewal needs it.
func TestFinding_L1_AnUnsentCopyLeavesTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sent := 0
		network := make(pipes)
		server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			sent++
			time.Sleep(5 * time.Second)
		})}
		var running sync.WaitGroup
		running.Go(func() { _ = server.Serve(network) })
		transport := &http.Transport{MaxConnsPerHost: 1, DialContext: network.dial}
		r := Runner{
			Store: &overHTTP{client: &http.Client{Transport: transport}}, Clock: clock.NewFake(0), HTTP: true,
			Go: func(f func()) bool { running.Go(f); return true },
		}
		for n := 1; n <= 2; n++ {
			now, began := r.Clock.Now(), time.Now()
			act := rules.Action{Kind: rules.Write, Key: "k", Asked: now, Again: now.Add(time.Second), Until: now.Add(time.Minute)}
			if _, err := r.Request(t.Context(), act, nil); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took != 5*time.Second || sent != n {
				t.Errorf("request %d had its answer after %v, and %d were sent", n, took, sent)
			}
		}
		transport.CloseIdleConnections()
		close(network)
		_ = server.Close()
		running.Wait()
	})
}
