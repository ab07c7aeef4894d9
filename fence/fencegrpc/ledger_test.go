package fencegrpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencegrpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ledger is a service that takes down under which tokens it was written: /test.Ledger/Write is a call, and /test.Ledger/Feed a
// stream that acknowledges each line.
type ledger struct {
	mu     sync.Mutex
	tokens []fence.Token
	err    error         // of Write
	entry  chan struct{} // if set, Write tells that it is under way, and waits for its context
}

func (l *ledger) take(ctx context.Context, line *wrapperspb.StringValue) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s, ok := fencegrpc.From(ctx)
	if !ok && line.GetValue() != "open" {
		l.err = errors.New("there is no sequencer")
	}
	l.tokens = append(l.tokens, s.Token)
}

func (l *ledger) written() []fence.Token {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]fence.Token(nil), l.tokens...)
}

func (l *ledger) write(ctx context.Context, line *wrapperspb.StringValue) (*wrapperspb.StringValue, error) {
	if l.entry != nil {
		l.entry <- struct{}{}
		<-ctx.Done()
		return nil, context.Cause(ctx)
	}
	l.take(ctx, line)
	return line, l.err
}

func (l *ledger) feed(s grpc.ServerStream) error {
	for {
		var line wrapperspb.StringValue
		err := s.RecvMsg(&line)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return errors.New("the handler's own error")
		}
		l.take(s.Context(), &line)
		if err := s.SendMsg(&line); err != nil {
			return err
		}
	}
}

// service is what a generated file would say of a ledger.
var service = grpc.ServiceDesc{
	ServiceName: "test.Ledger",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "Write", Handler: func(srv any, ctx context.Context, decode func(any) error, between grpc.UnaryServerInterceptor) (any, error) {
		var line wrapperspb.StringValue
		if err := decode(&line); err != nil {
			return nil, err
		}
		return between(ctx, &line, &grpc.UnaryServerInfo{Server: srv, FullMethod: write}, func(ctx context.Context, _ any) (any, error) {
			return srv.(*ledger).write(ctx, &line)
		})
	}}},
	Streams: []grpc.StreamDesc{{
		StreamName: "Feed", ServerStreams: true, ClientStreams: true,
		Handler: func(srv any, s grpc.ServerStream) error { return srv.(*ledger).feed(s) },
	}},
}

const write, feed = "/test.Ledger/Write", "/test.Ledger/Feed"

// serve serves the ledger behind a guard, on a port of this machine.
func (l *ledger) serve(t *testing.T, guard fence.Guard, opts fencegrpc.Options) (addr string) {
	t.Helper()
	lis, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(
		grpc.ChainUnaryInterceptor(fencegrpc.UnaryServerInterceptor(guard, opts)),
		grpc.ChainStreamInterceptor(fencegrpc.StreamServerInterceptor(guard, opts)),
	)
	server.RegisterService(&service, l)
	var done sync.WaitGroup
	done.Go(func() {
		if err := server.Serve(lis); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		server.Stop()
		done.Wait()
	})
	return lis.Addr().String()
}

// dial connects, with the interceptors of a client whose sequencer that is; without them when it is nil.
func dial(t *testing.T, addr string, sequencer func() (string, error), more ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	opts := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}
	if sequencer != nil {
		opts = append(opts,
			grpc.WithChainUnaryInterceptor(fencegrpc.UnaryClientInterceptor(sequencer)),
			grpc.WithChainStreamInterceptor(fencegrpc.StreamClientInterceptor(sequencer)),
		)
	}
	conn, err := grpc.NewClient(addr, append(opts, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return conn
}

// call calls Write.
func call(ctx context.Context, conn *grpc.ClientConn, line string) error {
	var got wrapperspb.StringValue
	err := conn.Invoke(ctx, write, wrapperspb.String(line), &got)
	if err == nil && got.GetValue() != line {
		return fmt.Errorf("the answer is %q", got.GetValue())
	}
	return err
}

// begin begins a stream.
func begin(ctx context.Context, conn *grpc.ClientConn) (grpc.ClientStream, error) {
	return conn.NewStream(ctx, &service.Streams[0], feed)
}

// line sends one line and waits for its acknowledgement. What io.EOF of a send stands for is told by the receipt.
func line(stream grpc.ClientStream, text string) error {
	if err := stream.SendMsg(wrapperspb.String(text)); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	var got wrapperspb.StringValue
	return stream.RecvMsg(&got)
}

// streamed sends one line in a stream of its own.
func streamed(ctx context.Context, conn *grpc.ClientConn, text string) error {
	stream, err := begin(ctx, conn)
	if err != nil {
		return err
	}
	if err := errors.Join(line(stream, text), stream.CloseSend()); err != nil {
		return err
	}
	var none wrapperspb.StringValue
	if err := stream.RecvMsg(&none); !errors.Is(err, io.EOF) {
		return fmt.Errorf("the end of the stream: %w", err)
	}
	return nil
}
