package server_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/client"
	"github.com/leasehold/leasehold/server"
)

// lateTry is a network that keeps the first POST: the client hears that the connection is lost, and the server hears nothing yet.
type lateTry struct {
	met  atomic.Bool
	kept chan *http.Request
}

func (l *lateTry) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodPost || l.met.Swap(true) {
		return http.DefaultTransport.RoundTrip(req)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	httptrace.ContextClientTrace(req.Context()).WroteHeaders()
	kept := req.Clone(req.Context())
	kept.Body = io.NopCloser(bytes.NewReader(body))
	l.kept <- kept
	return nil, errors.New("connection reset by peer")
}

// A server may read a request only after the one that was sent in its place. The call goes on: nothing is wrong.
func TestFinding_O3_ATryThatComesLateEndsNoWait(t *testing.T) {
	s := newSite(t, server.Options{})
	first := s.client(t, s.URL)
	g, err := first.Acquire(t.Context(), "job", client.AcquireOptions{})
	if err != nil {
		t.Fatal(err)
	}
	network := &lateTry{kept: make(chan *http.Request, 1)}
	second, err := client.New(s.URL, client.Options{HTTP: &http.Client{Transport: network}})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	acquired := make(chan error, 1)
	go func() {
		_, err := second.Acquire(t.Context(), "job", client.AcquireOptions{Wait: time.Minute})
		acquired <- err
	}()
	for {
		l, err := first.Get(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		if l.Waiters == 1 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	kept := <-network.kept
	resp, err := http.DefaultTransport.RoundTrip(kept.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusConflict {
		t.Errorf("the try that came late: %s, want that another has its place", resp.Status)
	}
	if err := first.Release(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	if err := <-acquired; err != nil {
		t.Errorf("%v, want the name", err)
	}
}
