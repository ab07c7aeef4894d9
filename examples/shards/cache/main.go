// Command cache is a key-value cache in front of a database. Each key is in the memory of one
// worker process, which alone writes it. A router, a plain HTTP proxy, sends each request to the
// worker that owns its key. The command writes and reads keys while it restarts every worker, one
// by one, and says what became of that:
//
//	go run ./examples/shards/cache
//
// No write is lost or refused, no read is stale, and the restarted workers begin with a warm cache:
// a worker that is to get a slice asks its present owner which keys are there, and loads them from
// the database when it owns the slice, before it serves them. The database compares tokens, so that
// a worker that was paused at the wrong moment can't overwrite a later one's values.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/shard/shardhttp"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/file"
)

const (
	space   = "cache"
	workers = 4
	clients = 8
	keys    = 50 // of each client
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var err error
	if len(os.Args) == 4 && os.Args[1] == "worker" {
		err = work(ctx, os.Args[2], os.Args[3])
	} else {
		_, err = play(ctx, os.Stdout)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cache:", err)
		os.Exit(1)
	}
}

// result is what clients saw.
type result struct {
	writes, reads, stale atomic.Int64
	failed               atomic.Pointer[error] // the last
	database, lateWrites int64                 // what the database was asked for
}

// play runs the workers, the router and the clients, and restarts all workers.
func play(ctx context.Context, out io.Writer) (*result, error) {
	dir, err := os.MkdirTemp("", "cache")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	db := &database{rows: map[string]row{}}
	dbAt, endDB, err := serve(ctx, db)
	if err != nil {
		return nil, err
	}
	defer endDB()
	f := &fleet{store: filepath.Join(dir, "leases.db"), db: dbAt}
	defer f.kill()
	for range workers {
		if err := f.start(ctx); err != nil {
			return nil, err
		}
	}
	st, err := file.Open(ctx, f.store, file.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = st.Close() }()
	if err := settled(ctx, st); err != nil {
		return nil, err
	}
	router, err := shard.NewRouter(ctx, st, space, shard.RouterOptions{})
	if err != nil {
		return nil, err
	}
	defer router.Close()
	front, endFront, err := serve(ctx, proxy(router))
	if err != nil {
		return nil, err
	}
	defer endFront()

	r := &result{}
	clientsCtx, stop := context.WithCancel(ctx)
	var all sync.WaitGroup
	for c := range clients {
		all.Go(func() { r.client(clientsCtx, front, c) })
	}
	defer all.Wait()
	defer stop()
	clk := clock.System()
	began := clk.Now()
	for range workers {
		if err := f.restart(ctx); err != nil {
			return nil, err
		}
		if err := settled(ctx, st); err != nil {
			return nil, err
		}
	}
	stop()
	all.Wait()
	r.database, r.lateWrites = db.reads.Load(), db.stale.Load()
	fmt.Fprintf(out, "%d workers restarted one by one in %v: %d writes, %d reads (%d by the database), %d stale\n",
		workers, clk.Now().Sub(began).Round(100*time.Millisecond), r.writes.Load(), r.reads.Load(), r.database, r.stale.Load())
	if err := r.failed.Load(); err != nil {
		return r, *err
	}
	return r, nil
}

// settled waits until every slice has an owner that it stays with.
func settled(ctx context.Context, st store.Store) error {
	for {
		owners, moving := map[string]bool{}, false
		for e, err := range shard.Map(ctx, st, space) {
			if errors.Is(err, store.ErrNotFound) { // no worker has joined yet
				break
			}
			if err != nil {
				return err
			}
			owners[e.Owner] = true
			moving = moving || e.Owner == "" || e.Next != ""
		}
		if !moving && len(owners) == workers {
			return nil
		}
		if err := clock.Sleep(ctx, clock.System(), 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// proxy is the router: a request goes to the worker that owns its key.
func proxy(router *shard.Router) http.Handler {
	p := &httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", "workers" },
		Transport: shardhttp.Transport(nil, router, shardhttp.Options{Key: key}),
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Kept, so that the transport can send it again.
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		r.Body, _ = r.GetBody()
		p.ServeHTTP(w, r)
	})
}

// key returns the key of a request: /keys/KEY.
func key(r *http.Request) string { return strings.TrimPrefix(r.URL.Path, "/keys/") }

// client writes its keys and reads them: nobody else does.
func (r *result) client(ctx context.Context, front string, c int) {
	written := map[string]string{}
	for n := 0; ctx.Err() == nil; n++ {
		url := fmt.Sprintf("http://%s/keys/%d-%d", front, c, n%keys)
		if n%4 == 0 || written[url] == "" {
			value := fmt.Sprint(n)
			if _, err := call(http.MethodPut, url, value, nil); err != nil {
				r.failed.Store(&err)
				return
			}
			r.writes.Add(1)
			written[url] = value
			continue
		}
		got, err := call(http.MethodGet, url, "", nil)
		if err != nil {
			r.failed.Store(&err)
			return
		}
		r.reads.Add(1)
		if got != written[url] {
			r.stale.Add(1)
		}
	}
}

// call makes a request, and returns what was answered.
func call(method, url, body string, header http.Header) (string, error) {
	req, err := http.NewRequestWithContext(context.Background(), method, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	if header != nil {
		req.Header = header
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s %s: %s: %s", method, url, resp.Status, text)
	}
	return string(text), err
}

// serve serves a handler on loopback.
func serve(ctx context.Context, h http.Handler) (address string, end func(), err error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() { _ = srv.Serve(l) }() // until end
	return l.Addr().String(), func() { _ = srv.Close() }, nil
}

// fleet is the worker processes, the oldest first.
type fleet struct {
	store, db string
	all       []*exec.Cmd
}

func (f *fleet) start(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, "worker", f.store, f.db)
	cmd.Stderr = os.Stderr
	f.all = append(f.all, cmd)
	return cmd.Start()
}

// restart ends the oldest worker gracefully, and starts another one.
func (f *fleet) restart(ctx context.Context) error {
	old := f.all[0]
	f.all = f.all[1:]
	if err := errors.Join(old.Process.Signal(syscall.SIGTERM), old.Wait()); err != nil {
		return err
	}
	return f.start(ctx)
}

func (f *fleet) kill() {
	for _, cmd := range f.all {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
	}
}
