//go:build linux

package shards

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/shard/shardhttp"
)

// servingEnv says where the store is of a worker that serves writes over HTTP, and slicesEnv how many slices the space has.
const (
	servingEnv = "LEASEHOLD_SHARDS_SERVE"
	slicesEnv  = "LEASEHOLD_SHARDS_SLICES"
)

const (
	servingSpace = "writes"
	servingTTL   = 10 * time.Second
	lingers      = time.Second // after Leave: routers that are late get a 421
)

// journal is what a worker says to its judge, a line for each thing.
type journal struct {
	mu  sync.Mutex
	out *bufio.Writer
}

func (j *journal) say(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	fmt.Fprintf(j.out, format, args...)
}

func (j *journal) flush() {
	j.mu.Lock()
	defer j.mu.Unlock()
	_ = j.out.Flush() // the judge has gone
}

// serve is a worker that accepts writes over HTTP until SIGTERM. It says "A KEY ID TOKEN FROM TO" for a write that it accepted,
// whose last check ran between two instants; "S SLICE TOKEN AT" for a slice that it is about to serve, "E SLICE TOKEN AT" for one
// that it is about to stop serving, and "J" when it has joined.
func serve(at string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	slices, err := strconv.Atoi(os.Getenv(slicesEnv))
	if err != nil {
		return err
	}
	st, finish, err := open(ctx, at)
	if err != nil {
		return err
	}
	defer finish()
	j := &journal{out: bufio.NewWriterSize(os.Stdout, 1<<16)}
	m, err := lease.NewManager(tracing(st, j.say), lease.Options{TTL: servingTTL})
	if err != nil {
		return err
	}
	defer m.Close()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	clk := m.Clock()
	o, err := shard.Join(ctx, m, shard.Space{Name: servingSpace, Hashed: true, Slices: slices}, shard.Worker{
		Address: listener.Addr().String(),
		OnError: func(err error) { fmt.Fprintln(os.Stderr, err) },
		Start: func(_ context.Context, s *shard.Slice) error {
			j.say("S %s %d %d\n", s.ID(), s.Token, clk.Now())
			return nil
		},
		Drain: func(_ context.Context, s *shard.Slice) { j.say("E %s %d %d\n", s.ID(), s.Token, clk.Now()) },
	})
	if err != nil {
		return err
	}
	srv := &http.Server{ReadHeaderTimeout: time.Minute, Handler: shardhttp.Handler(o, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := shardhttp.Slice(r.Context())
		from := clk.Now()
		err := s.Check()
		to := clk.Now()
		if err != nil {
			shardhttp.Refuse(w, err)
			return
		}
		j.say("A %s %s %d %d %d\n", r.Header.Get(shardhttp.KeyHeader), r.URL.Query().Get("id"), s.Token, from, to)
	}), shardhttp.Options{})}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(listener) }()
	j.say("J\n")
	for ctx.Err() == nil {
		j.flush()
		_ = clock.Sleep(ctx, clk, 50*time.Millisecond)
	}
	leaving, cancel := context.WithTimeout(context.Background(), 3*servingTTL)
	defer cancel()
	err = o.Leave(leaving)
	_ = clock.Sleep(leaving, clk, lingers)
	if err := srv.Shutdown(leaving); err != nil {
		return err
	}
	j.flush()
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		return ended
	}
	return err
}
