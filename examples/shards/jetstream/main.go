// Command jetstream consumes a stream of NATS JetStream in partitions. Each partition has one
// consumer at a time, among all workers, and a checkpoint from which the next one continues:
//
//	go run ./examples/shards/jetstream [URL of a NATS server]
//
// Without a URL, the command starts a server. Orders are published while workers join, leave, and
// stop at once. In the end, each order has been counted exactly once: the sums of a partition and
// the sequence number that they are of are one checkpoint, which is saved under the token of the
// partition's owner. A consumer that was paused can't save any more once there is a later one.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/leasehold/leasehold/clock"
	"github.com/leasehold/leasehold/shard"
	leasehold "github.com/leasehold/leasehold/store/nats"
)

const (
	space      = "orders"
	stream     = "ORDERS"
	bucket     = "leases"
	partitions = 16
	ttl        = 3 * time.Second
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "jetstream:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 {
		_, err := play(ctx, os.Stdout, args[0])
		return err
	}
	url, end, err := server(ctx)
	if err != nil {
		return err
	}
	defer end()
	_, err = play(ctx, os.Stdout, url)
	return err
}

// server starts a NATS server: the program in PATH, or the one that go builds.
func server(ctx context.Context) (url string, end func(), err error) {
	dir, err := os.MkdirTemp("", "jetstream")
	if err != nil {
		return "", nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0") // a port that is free
	if err != nil {
		return "", nil, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	flags := []string{"-js", "-a", "127.0.0.1", "-sd", dir, "-p", strconv.Itoa(port)}
	cmd := exec.CommandContext(ctx, "nats-server", flags...)
	if _, err := exec.LookPath("nats-server"); err != nil {
		cmd = exec.CommandContext(ctx, "go", append([]string{"run", "github.com/nats-io/nats-server/v2@v2.15.2"}, flags...)...)
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // go run passes it on
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("nats://127.0.0.1:%d", port), func() {
		_ = cmd.Cancel()
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	}, nil
}

// connect connects, once the server is there.
func connect(ctx context.Context, url string) (*nats.Conn, jetstream.JetStream, error) {
	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true), nats.ReconnectWait(100*time.Millisecond))
	if err != nil {
		return nil, nil, err
	}
	for !nc.IsConnected() {
		if err := clock.Sleep(ctx, clock.System(), 20*time.Millisecond); err != nil {
			nc.Close()
			return nil, nil, err
		}
	}
	js, err := jetstream.New(nc)
	return nc, js, err
}

// result compares what was published with what was counted.
type result struct {
	published, counted sums
	repeated           int // messages that were read again, after a consumer had stopped at once
}

// play publishes orders while consumers come and go.
func play(ctx context.Context, out io.Writer, url string) (*result, error) {
	nc, js, err := connect(ctx, url)
	if err != nil {
		return nil, err
	}
	defer nc.Close()
	if err := leasehold.Create(ctx, js, bucket, 1); err != nil {
		return nil, err
	}
	if _, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: stream, Subjects: []string{"orders.*"}}); err != nil {
		return nil, err
	}
	r := &result{}
	publishing, stop := context.WithCancel(ctx)
	defer stop()
	var publisher sync.WaitGroup
	var failed error
	publisher.Go(func() { failed = r.publish(publishing, js) })
	f := &fleet{url: url, out: out}
	defer f.end()
	for _, step := range []func(context.Context) error{f.join, f.join, f.join, f.leave, f.stop, f.join} {
		if err := errors.Join(step(ctx), clock.Sleep(ctx, clock.System(), time.Second)); err != nil {
			return nil, err
		}
	}
	stop()
	publisher.Wait()
	if failed != nil {
		return nil, failed
	}
	if r.counted, err = f.total(ctx, r.published.Count); err != nil {
		return nil, err
	}
	r.repeated = f.read() - r.counted.Count
	fmt.Fprintf(out, "%d orders of %d cents were published, and %d of %d counted; %d were read again\n",
		r.published.Count, r.published.Cents, r.counted.Count, r.counted.Cents, r.repeated)
	return r, nil
}

// publish publishes orders until ctx is done: those of a customer in one partition.
func (r *result) publish(ctx context.Context, js jetstream.JetStream) error {
	for n := 0; ctx.Err() == nil; n++ {
		customer := fmt.Sprint("customer-", n%500)
		subject := fmt.Sprint("orders.", shard.Hash(customer)%partitions)
		cents := 100 + n%900
		id := jetstream.WithMsgID(strconv.Itoa(n)) // so that it can be published again
		for {
			_, err := js.Publish(context.WithoutCancel(ctx), subject, []byte(strconv.Itoa(cents)), id)
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				return err
			}
		}
		r.published.Count++
		r.published.Cents += cents
	}
	return nil
}
