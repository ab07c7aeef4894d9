//go:build linux

package shards

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/etcd"
	"github.com/leasehold/leasehold/store/file"
	"github.com/leasehold/leasehold/store/postgres"
)

// workerEnv says where the store is of a worker, which this test binary is when it is set.
const workerEnv = "LEASEHOLD_SHARDS_STORE"

const (
	ttl      = 2 * time.Second
	space    = "load"
	numParts = 64
	numKeys  = 200
	lookEach = 5 * time.Millisecond
)

func TestMain(m *testing.M) {
	if at, what := os.Getenv(servingEnv), os.Getenv(floorEnv); what != "" {
		if err := floor(at, what); err != nil {
			fmt.Fprintln(os.Stderr, "floor:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if at := os.Getenv(servingEnv); at != "" {
		if err := serve(at); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if at := os.Getenv(workerEnv); at != "" {
		if err := work(at); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// open opens a store: "file PATH", "etcd ADDRESS", "postgres URL".
func open(ctx context.Context, at string) (st store.Store, finish func(), err error) {
	engine, where, _ := strings.Cut(at, " ")
	switch engine {
	case "etcd":
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{where}, Logger: clientv3.NewCtxClient(ctx).GetLogger()})
		if err != nil {
			return nil, nil, err
		}
		s, err := etcd.New(client, etcd.Options{})
		return s, func() { _, _ = s.Close(), client.Close() }, err
	case "postgres":
		config, err := pgxpool.ParseConfig(where)
		if err != nil {
			return nil, nil, err
		}
		config.MaxConns = 3 // and one that listens: 20 processes have room among 100
		pool, err := pgxpool.NewWithConfig(ctx, config)
		if err != nil {
			return nil, nil, err
		}
		if err := postgres.Create(ctx, pool, ""); err != nil {
			pool.Close()
			return nil, nil, err
		}
		s, err := postgres.Open(ctx, pool, postgres.Options{})
		return s, func() { _ = s.Close(); pool.Close() }, err
	}
	s, err := file.Open(ctx, where, file.Options{})
	return s, func() { _ = s.Close() }, err
}

// keyName returns the i-th key.
func keyName(i int) string { return fmt.Sprintf("key-%03d", i) }

// work is a worker until SIGTERM: one that can't join in time, as on a machine that is busy, tries
// again, as a supervisor would have it do.
func work(at string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	for {
		switch joined, err := workOnce(ctx, at); {
		case joined || err == nil:
			return err
		case ctx.Err() != nil:
			return nil // it was ended before it had joined
		default:
			fmt.Fprintln(os.Stderr, "not joined:", err)
		}
	}
}

// workOnce joins, and leaves when ctx is done. It writes what it sees to standard output, a line
// each: "P KEY TOKEN FROM TO" for a check that passed between two instants, "W KEY TOKEN" for a write
// that the guard is to judge.
func workOnce(ctx context.Context, at string) (joined bool, err error) {
	st, finish, err := open(ctx, at)
	if err != nil {
		return false, err
	}
	defer finish()
	m, err := lease.NewManager(st, lease.Options{TTL: ttl})
	if err != nil {
		return false, err
	}
	defer m.Close()
	o, err := shard.Join(ctx, m, shard.Space{Name: space, Hashed: true, Slices: numParts}, shard.Worker{
		Address: fmt.Sprint(os.Getpid()), OnError: func(err error) { fmt.Fprintln(os.Stderr, err) },
	})
	if err != nil {
		return false, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		look(m.Clock(), o, ctx.Done())
	}()
	<-ctx.Done()
	leaving, cancel := context.WithTimeout(context.Background(), 10*ttl)
	defer cancel()
	err = o.Leave(leaving)
	<-done
	return true, err
}

// look checks all keys again and again, and writes under each token that passes; some writes are
// late. After the end it looks a little longer, while the worker leaves.
func look(clk clock.Clock, o *shard.Owner, end <-chan struct{}) {
	out := bufio.NewWriterSize(os.Stdout, 1<<16)
	type late struct {
		due  clock.Instant
		line string
	}
	var lates []late
	ending := false
	for {
		passed := 0
		for i := range numKeys {
			key := keyName(i)
			from := clk.Now()
			token, err := o.Check(key)
			to := clk.Now()
			if err != nil {
				continue
			}
			passed++
			fmt.Fprintf(out, "P %s %d %d %d\n", key, token, from, to)
			if rand.IntN(20) == 0 {
				lates = append(lates, late{to.Add(rand.N(2 * ttl)), fmt.Sprintf("W %s %d\n", key, token)})
			} else if rand.IntN(4) == 0 {
				fmt.Fprintf(out, "W %s %d\n", key, token)
			}
		}
		rest := lates[:0]
		for _, l := range lates {
			if now := clk.Now(); now >= l.due {
				_, _ = out.WriteString(l.line)
			} else {
				rest = append(rest, l)
			}
		}
		lates = rest
		if err := out.Flush(); errors.Is(err, syscall.EPIPE) {
			return
		}
		select {
		case <-end:
			ending = true
		default:
		}
		if ending && passed == 0 {
			return
		}
		_ = clock.Sleep(context.Background(), clk, lookEach)
	}
}
