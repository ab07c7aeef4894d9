// Command fencing-grpc guards a gRPC stream: what a worker sends after another has taken its lease
// is refused, message by message, though the stream was begun in time. The guard asks the store who
// holds the lease.
//
//	go run ./examples/fencing-grpc
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencegrpc"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

// name is the lease that guards the resource.
const name = "billing"

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "fencing-grpc:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	db := memory.NewDB(memory.Options{})
	addr, stop, err := serve(ctx, db.Open(), out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	var workers [2]*worker
	for i, who := range []string{"a", "b"} {
		w, err := newWorker(db.Open(), who, addr)
		if err != nil {
			return err
		}
		defer func() { _ = w.close() }()
		workers[i] = w
	}
	return tell(ctx, workers[0], workers[1], out)
}

// ledger is what a generated file would say of a service with one method, rpc Feed(stream
// StringValue) returns (stream StringValue).
var ledger = grpc.ServiceDesc{ServiceName: "example.Ledger", HandlerType: (*any)(nil), Streams: []grpc.StreamDesc{{
	StreamName: "Feed", ClientStreams: true, ServerStreams: true,
	Handler: func(out any, stream grpc.ServerStream) error {
		for {
			var line wrapperspb.StringValue
			if err := stream.RecvMsg(&line); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			fmt.Fprintf(out.(io.Writer), "  the resource writes %s\n", line.GetValue())
			if err := stream.SendMsg(&line); err != nil {
				return err
			}
		}
	},
}}}

// serve serves the resource: it takes down each line that it receives, if the guard lets it.
func serve(ctx context.Context, st store.Store, out io.Writer) (addr string, stop func() error, err error) {
	guard, err := fence.NewOnline(lease.Source(st), fence.OnlineOptions{})
	if err != nil {
		return "", nil, err
	}
	server := grpc.NewServer(grpc.ChainStreamInterceptor(fencegrpc.StreamServerInterceptor(guard, fencegrpc.Options{
		Name:     func(context.Context, string) string { return name },
		Messages: true,
	})))
	server.RegisterService(&ledger, out)
	lis, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(lis) }()
	return lis.Addr().String(), func() error {
		server.Stop()
		return errors.Join(<-served, st.Close())
	}, nil
}

// worker sends lines to the resource while it holds the lease, or believes that it does.
type worker struct {
	st    store.Store
	m     *lease.Manager
	conn  *grpc.ClientConn
	lease *lease.Lease
}

func newWorker(st store.Store, who, addr string) (*worker, error) {
	m, err := lease.NewManager(st, lease.Options{Name: who})
	if err != nil {
		return nil, err
	}
	w := &worker{st: st, m: m}
	// This worker asks nobody whether its lease is valid still, as one that was paused right after
	// it had asked. A good one returns w.lease.Check() with the text, and then our interceptor
	// sends nothing.
	sequencer := func() (string, error) { return w.lease.Sequencer().String(), nil }
	w.conn, err = grpc.NewClient(addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithChainStreamInterceptor(fencegrpc.StreamClientInterceptor(sequencer)),
	)
	return w, err
}

func (w *worker) close() error { return errors.Join(w.conn.Close(), w.m.Close(), w.st.Close()) }

// begin takes the lease, and begins a stream under it.
func (w *worker) begin(ctx context.Context) (stream grpc.ClientStream, err error) {
	if w.lease, err = w.m.Acquire(ctx, name); err != nil {
		return nil, err
	}
	return w.conn.NewStream(ctx, &ledger.Streams[0], "/example.Ledger/Feed")
}

// send sends a line, and waits for its acknowledgement.
func send(stream grpc.ClientStream, line string) error {
	// The receipt tells why it ended.
	if err := stream.SendMsg(wrapperspb.String(line)); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return stream.RecvMsg(&wrapperspb.StringValue{})
}

func tell(ctx context.Context, a, b *worker, out io.Writer) error {
	old, err := a.begin(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "a holds the lease (token %d), and begins a stream\n", a.lease.Token())
	if err := send(old, "R1"); err != nil {
		return err
	}
	if err := a.lease.Release(ctx); err != nil {
		return err
	}
	stream, err := b.begin(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "b holds the lease (token %d), and a doesn't know it\n", b.lease.Token())
	if err := send(stream, "R2"); err != nil {
		return err
	}
	if err := send(old, "R3"); !errors.Is(err, fence.ErrStale) {
		return fmt.Errorf("R3 was not refused: %w", err)
	} else if _, err := fmt.Fprintln(out, "  the resource refuses R3:", err); err != nil {
		return err
	}
	return errors.Join(send(stream, "R4"), stream.CloseSend(), b.lease.Release(ctx))
}
