// Command fencing-http shows what a fencing token is for, over HTTP: a request that was on its way
// while its sender lost the lease, another held it, and its sender held it again. The sender may
// write at the moment the request arrives, and it must be refused.
//
//	go run ./examples/fencing-http
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencehttp"
	"github.com/leasehold/leasehold/fence/filemarks"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/memory"
)

// name is the lease that guards the resource.
const name = "billing"

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fencing-http:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dir, err := os.MkdirTemp("", "fencing-http-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	keys, err := fence.NewKeys([]byte("an example's key is no secret"))
	if err != nil {
		return err
	}
	url, stop, err := serve(ctx, filepath.Join(dir, "marks"), keys, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	st := memory.New(memory.Options{})
	defer func() { err = errors.Join(err, st.Close()) }()
	a, err := lease.NewManager(st, lease.Options{Name: "a"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	b, err := lease.NewManager(st, lease.Options{Name: "b"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	return story{ctx, url, keys, out}.tell(a, b)
}

// serve serves the resource: it takes down what it is told to write, if the guard lets it.
func serve(ctx context.Context, marks string, keys *fence.Keys, out io.Writer) (url string, stop func() error, err error) {
	file, err := filemarks.Open(marks)
	if err != nil {
		return "", nil, err
	}
	guard, err := fence.NewOffline(file)
	if err != nil {
		return "", nil, errors.Join(err, file.Close())
	}
	ledger := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var what bytes.Buffer
		if _, err := what.ReadFrom(r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		fmt.Fprintf(out, "  the resource writes %s\n", &what)
	})
	lis, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, errors.Join(err, file.Close())
	}
	server := &http.Server{
		Handler:           fencehttp.Handler(guard, ledger, fencehttp.Options{Keys: keys, Name: func(*http.Request) string { return name }}),
		ReadHeaderTimeout: time.Second,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(lis) }()
	return "http://" + lis.Addr().String(), func() error {
		err := server.Close()
		if end := <-served; !errors.Is(end, http.ErrServerClosed) {
			err = errors.Join(err, end)
		}
		return errors.Join(err, file.Close())
	}, nil
}

type story struct {
	ctx  context.Context
	url  string
	keys *fence.Keys
	out  io.Writer
}

func (s story) tell(a, b *lease.Manager) error {
	first, err := a.Acquire(s.ctx, name)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "a holds the lease (token %d), and sends R1, which the network delays\n", first.Token())
	slow := network{sent: make(chan struct{}), arrive: make(chan struct{})}
	r1 := make(chan error, 1)
	go func() { r1 <- s.send(first, slow, "R1") }()
	<-slow.sent

	if err := first.Release(s.ctx); err != nil {
		return err
	}
	err = b.Run(s.ctx, name, func(_ context.Context, l *lease.Lease) error {
		fmt.Fprintf(s.out, "b holds the lease (token %d)\n", l.Token())
		return s.send(l, http.DefaultTransport, "R2")
	})
	if err != nil {
		return err
	}
	return a.Run(s.ctx, name, func(_ context.Context, l *lease.Lease) error {
		fmt.Fprintf(s.out, "a holds the lease again (token %d), and R1 arrives\n", l.Token())
		close(slow.arrive)
		var stale *fence.StaleError
		if err := <-r1; !errors.As(err, &stale) {
			return fmt.Errorf("R1 was not refused: %w", err)
		}
		fmt.Fprintf(s.out, "  the resource refuses it: %v\n", stale)
		return s.send(l, http.DefaultTransport, "R3")
	})
}

// send sends a request under a lease.
func (s story) send(l *lease.Lease, through http.RoundTripper, what string) error {
	client := &http.Client{Transport: fencehttp.Transport(through, func() (string, error) {
		if err := l.Check(); err != nil {
			return "", err
		}
		return s.keys.Sign(l.Sequencer())
	})}
	req, err := http.NewRequestWithContext(s.ctx, http.MethodPost, s.url, strings.NewReader(what))
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return errors.Join(err, resp.Body.Close())
}

// network delays what is sent through it.
type network struct{ sent, arrive chan struct{} }

func (n network) RoundTrip(r *http.Request) (*http.Response, error) {
	close(n.sent)
	select {
	case <-n.arrive:
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	}
	return http.DefaultTransport.RoundTrip(r)
}
