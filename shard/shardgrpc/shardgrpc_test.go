package shardgrpc_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/internal/proof/shardtest"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/shard/shardgrpc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a space with workers behind real gRPC servers on loopback.
type world struct {
	*shardtest.World

	creds credentials.TransportCredentials // of servers; nil for none
}

func newWorld(t *testing.T) *world { return &world{World: shardtest.New(t)} }

type worker struct {
	shardtest.Worker
	address string
	srv     *grpc.Server

	instead atomic.Pointer[func(context.Context) error] // of what a worker does
}

// join starts a worker that counts what it accepts.
func (w *world) join(name string) *worker { return w.joinAt(name, "127.0.0.1:0") }

func (w *world) joinAt(name, address string) *worker {
	w.T.Helper()
	p := &worker{}
	listener, err := (&net.ListenConfig{}).Listen(w.T.Context(), "tcp", address)
	if err != nil {
		w.T.Fatal(err)
	}
	p.address = listener.Addr().String()
	p.Worker = w.Join(name, p.address)
	hit := func(ctx context.Context) error {
		w.Hit(name)
		if f := p.instead.Load(); f != nil {
			return (*f)(ctx)
		}
		return nil
	}
	creds := w.creds
	if creds == nil {
		creds = insecure.NewCredentials()
	}
	p.srv = grpc.NewServer(
		grpc.Creds(creds),
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, h grpc.UnaryHandler) (any, error) {
			if err := hit(ctx); err != nil {
				return nil, err
			}
			return h(ctx, req)
		}, shardgrpc.UnaryServerInterceptor(p.Owner, shardgrpc.Options{})),
		grpc.ChainStreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, h grpc.StreamHandler) error {
			if err := hit(ss.Context()); err != nil {
				return err
			}
			return h(srv, ss)
		}, shardgrpc.StreamServerInterceptor(p.Owner, shardgrpc.Options{})),
	)
	p.srv.RegisterService(&service, w)
	served := make(chan error, 1)
	go func() { served <- p.srv.Serve(listener) }()
	w.T.Cleanup(func() {
		p.srv.Stop()
		if err := <-served; err != nil {
			w.T.Error(err)
		}
	})
	return p
}

const (
	writeMethod  = "/test.Orders/Write"
	streamMethod = "/test.Orders/WriteAll"
)

// service has one unary method and one with streams.
var service = grpc.ServiceDesc{
	ServiceName: "test.Orders", HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "Write", Handler: func(srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor) (any, error) {
		req := &wrapperspb.StringValue{}
		if err := decode(req); err != nil {
			return nil, err
		}
		return interceptor(ctx, req, &grpc.UnaryServerInfo{Server: srv, FullMethod: writeMethod}, func(ctx context.Context, req any) (any, error) {
			return req, srv.(*world).accept(ctx, req.(*wrapperspb.StringValue).GetValue())
		})
	}}},
	Streams: []grpc.StreamDesc{{StreamName: "WriteAll", ServerStreams: true, ClientStreams: true, Handler: func(srv any, ss grpc.ServerStream) error {
		for {
			req := &wrapperspb.StringValue{}
			if err := ss.RecvMsg(req); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			if err := srv.(*world).accept(ss.Context(), req.GetValue()); err != nil {
				return err
			}
			if err := ss.SendMsg(req); err != nil {
				return err
			}
		}
	}}},
}

// accept is the program behind the interceptors.
func (w *world) accept(ctx context.Context, text string) error {
	return w.Accept(shardgrpc.Slice(ctx), text)
}

func (w *world) client(r *shard.Router, opts shardgrpc.Options) *grpc.ClientConn {
	w.T.Helper()
	conn, err := shardgrpc.NewClient(r, opts, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		w.T.Fatal(err)
	}
	w.T.Cleanup(func() { conn.Close() })
	return conn
}

var impatient = shardgrpc.Options{Wait: -1}

func write(ctx context.Context, conn *grpc.ClientConn, key, text string) error {
	if key != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, shardgrpc.KeyHeader, key)
	}
	return conn.Invoke(ctx, writeMethod, wrapperspb.String(text), &wrapperspb.StringValue{})
}

func want(t *testing.T, what string, err error, code codes.Code) {
	t.Helper()
	if status.Code(err) != code {
		t.Errorf("%s: %v; want %v", what, err, code)
	}
}

// While slices move to and fro, what a caller was told is written was written once, by the owner, and nothing else was.
func TestMovesWhileCallsRun(t *testing.T) {
	w := newWorld(t)
	a, b := w.join("a"), w.join("b")
	w.Owns(a.Worker, shardtest.Names[:1]...)
	r := w.Router()
	w.WritesWhileMoved(b.Worker, a.Worker, func() func(key, text string) error {
		conn := w.client(r, shardgrpc.Options{})
		return func(key, text string) error { return write(t.Context(), conn, key, text) } // it waits for the next owner
	})
}

// A caller whose router is late is told the owner by the wrong worker, once, and its call arrives there.
func TestAWrongOwnerOnce(t *testing.T) {
	w := newWorld(t)
	a, b := w.join("a"), w.join("b")
	w.Owns(a.Worker, "k0")
	r := w.Router()
	r.Close() // it knows what it knows
	w.Move("k0", b.Worker)
	w.Owns(b.Worker, "k0")
	w.Until("a knows the owner", func() bool {
		var wrong *shard.WrongOwner
		_, err := a.Check("k0")
		return errors.As(err, &wrong) && wrong.Now == b.address
	})
	conn := w.client(r, impatient)
	if err := write(t.Context(), conn, "k0", "x"); err != nil || w.Asked() != "a b" || w.Count("x") != 1 {
		t.Errorf("%v; asked %s; accepted %d times", err, w.Asked(), w.Count("x"))
	}

	// A stream isn't begun again, and its caller is told.
	ss := begin(t.Context(), t, conn, "k0")
	_ = ss.SendMsg(wrapperspb.String("y")) // it may have been refused by then
	err := ss.RecvMsg(&wrapperspb.StringValue{})
	want(t, "a stream", err, codes.FailedPrecondition)
	if wrong := shardgrpc.WrongOwner(err); wrong == nil || wrong.Now != b.address || wrong.Token == 0 || w.Count("y") != 0 {
		t.Errorf("%v, %+v; accepted %d times", err, wrong, w.Count("y"))
	}
}

func begin(ctx context.Context, t *testing.T, conn *grpc.ClientConn, key string) grpc.ClientStream {
	t.Helper()
	ss, err := conn.NewStream(metadata.AppendToOutgoingContext(ctx, shardgrpc.KeyHeader, key), &service.Streams[0], streamMethod)
	if err != nil {
		t.Fatal(err)
	}
	return ss
}

// A call whose worker has gone goes to the next owner, though the router is late; and one of a worker that was restarted at its address
// arrives there.
func TestAWorkerThatHasGone(t *testing.T) {
	w := newWorld(t)
	a, b := w.joinAt("a", servers.FreeAddr(t)), w.join("b") // nobody else takes a's address while it is down
	w.Owns(a.Worker, "k0")
	r := w.Router()
	conn := w.client(r, shardgrpc.Options{})
	if err := write(t.Context(), conn, "k0", "w"); err != nil {
		t.Fatal(err)
	}
	late := w.Router()
	late.Close()
	old := w.client(late, shardgrpc.Options{})
	if err := a.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.Owns(b.Worker, shardtest.Names...)
	a.srv.GracefulStop() // the way of a worker that leaves
	for _, c := range []*grpc.ClientConn{conn, old} {
		if err := write(t.Context(), c, "k0", "x"); err != nil {
			t.Error(err)
		}
	}
	again := w.joinAt("a2", a.address)
	w.Move("k0", again.Worker)
	if err := write(t.Context(), conn, "k0", "y"); err != nil {
		t.Error(err)
	}
	w.Owns(again.Worker, "k0")
	if err := write(t.Context(), conn, "k0", "z"); err != nil || w.Count("x") != 2 || w.Count("y") != 1 || w.Count("z") != 1 {
		t.Errorf("%v; accepted %v", err, w.Accepted())
	}
	// Nobody is there any more: nothing is sent, and the caller is told.
	again.srv.Stop()
	before := w.Asked()
	want(t, "without a worker", write(t.Context(), w.client(r, impatient), "k0", "n"), codes.Unavailable)
	if w.Asked() != before {
		t.Errorf("asked %q", w.Asked())
	}
}

// A call isn't made again where the first worker may have carried it out.
func TestNothingIsSentInVain(t *testing.T) {
	w := newWorld(t)
	a, b := w.join("a"), w.join("b")
	w.Owns(a.Worker, "k0")
	r := w.Router()
	r.Close()
	w.Move("k0", b.Worker)
	w.Owns(b.Worker, "k0")
	n := 0
	for code, answer := range map[codes.Code]func(context.Context) error{
		codes.FailedPrecondition: func(context.Context) error { return status.Error(codes.FailedPrecondition, "of the program") },
		codes.Unavailable:        func(context.Context) error { return status.Error(codes.Unavailable, "of a proxy") },
		codes.Aborted:            func(context.Context) error { return status.Error(codes.Aborted, "of the program") },
	} {
		a.instead.Store(&answer)
		want(t, "the answer stands", write(t.Context(), w.client(r, shardgrpc.Options{}), "k0", "x"), code)
		if n++; strings.Count(w.Asked(), "a") != n || strings.Contains(w.Asked(), "b") {
			t.Errorf("%v: asked %q", code, w.Asked())
		}
	}
	// The connection breaks while the worker is at it.
	ends := func(ctx context.Context) error {
		go a.srv.Stop()
		<-ctx.Done()
		return ctx.Err()
	}
	a.instead.Store(&ends)
	want(t, "a connection that breaks", write(t.Context(), w.client(r, shardgrpc.Options{}), "k0", "x"), codes.Unavailable)
	if strings.Contains(w.Asked(), "b") || w.Count("x") != 0 {
		t.Errorf("asked %q", w.Asked())
	}
}

var thenB = regexp.MustCompile(`^(a )+b( b)*$`)

// A call waits while its slice is drained, and is then carried out once, by the next owner; not beyond its deadline, or Wait.
func TestACallWaitsForTheNextOwner(t *testing.T) {
	w := newWorld(t)
	a, b := w.join("a"), w.join("b")
	w.Owns(a.Worker, "k0")
	r := w.Router()
	var asked atomic.Int32
	self := func(context.Context) error { // as while the slice is drained
		if asked.Add(1) == 3 {
			w.Move("k0", b.Worker)
		}
		return shardgrpc.Refuse(&shard.WrongOwner{Now: a.address})
	}
	a.instead.Store(&self)
	// The router may hear of the owner before the owner does: then b is asked again.
	if err := write(t.Context(), w.client(r, shardgrpc.Options{}), "k0", "x"); err != nil || w.Count("x") != 1 || !thenB.MatchString(w.Asked()) {
		t.Errorf("%v; accepted %d times; asked %q", err, w.Count("x"), w.Asked())
	}
	b.instead.Store(&self)
	want(t, "after Wait", write(t.Context(), w.client(r, shardgrpc.Options{Wait: 30 * time.Millisecond}), "k0", "y"), codes.FailedPrecondition)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	err := write(ctx, w.client(r, shardgrpc.Options{Wait: time.Hour}), "k0", "z")
	if c := status.Code(err); c != codes.DeadlineExceeded && c != codes.FailedPrecondition {
		t.Errorf("after the deadline: %v", err)
	}
	if w.Count("y") != 0 || w.Count("z") != 0 {
		t.Error("it was written all the same")
	}
}

// writeStream writes by a stream of one message.
func writeStream(ctx context.Context, conn *grpc.ClientConn, key, text string) error {
	ss, err := conn.NewStream(metadata.AppendToOutgoingContext(ctx, shardgrpc.KeyHeader, key), &service.Streams[0], streamMethod)
	if err != nil {
		return err
	}
	_ = ss.SendMsg(wrapperspb.String(text)) // what comes says why it failed
	if err := ss.RecvMsg(&wrapperspb.StringValue{}); err != nil {
		return err
	}
	if err := ss.CloseSend(); err != nil {
		return err
	}
	if err := ss.RecvMsg(&wrapperspb.StringValue{}); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// Where no worker owns a key, or its worker was ended, a call waits for the next, and a stream, too; not beyond its deadline.
func TestACallWaitsForAWorker(t *testing.T) {
	w := newWorld(t)
	a := w.join("a")
	w.Owns(a.Worker, "k0")
	r := w.Router()
	conn := w.client(r, shardgrpc.Options{})
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	a.srv.Stop()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	want(t, "with a deadline", write(ctx, conn, "k0", "x"), codes.DeadlineExceeded)
	want(t, "after Wait", write(t.Context(), w.client(r, shardgrpc.Options{Wait: 30 * time.Millisecond}), "k0", "x"), codes.Unavailable)
	done := make(chan error, 2)
	go func() { done <- write(t.Context(), conn, "k0", "y") }()
	go func() {
		err := writeStream(t.Context(), conn, "k1", "s")
		for shardgrpc.WrongOwner(err) != nil { // the router has heard of the owner before the owner did
			err = writeStream(t.Context(), conn, "k1", "s")
		}
		done <- err
	}()
	w.join("b")
	if err := errors.Join(<-done, <-done); err != nil || w.Count("y") != 1 || w.Count("s") != 1 || w.Count("x") != 0 {
		t.Errorf("%v; accepted %v", err, w.Accepted())
	}
}

// A call to a worker that doesn't answer its connection goes to the next owner as soon as the key has one.
func TestAKeyThatMovesWhileItsWorkerIsSilent(t *testing.T) {
	w := newWorld(t)
	a := w.join("a")
	w.Owns(a.Worker, "k0")
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0") // connects, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	st := w.DB.Open()
	defer st.Close()
	m, err := lease.NewManager(st, lease.Options{TTL: shardtest.TTL})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	b, err := shard.Join(t.Context(), m, shard.Space{Name: "s", Names: shardtest.Names}, shard.Worker{Name: "b", Address: silent.Addr().String(), Strategy: shardtest.Settled{}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := shard.RequestMove(t.Context(), w.St, "s", "k0", "b"); err != nil {
		t.Fatal(err)
	}
	w.Until("b owns k0", func() bool { _, err := b.Check("k0"); return err == nil })
	r := w.Router()
	done := make(chan error, 1)
	go func() { done <- write(t.Context(), w.client(r, shardgrpc.Options{}), "k0", "x") }()
	if _, err := silent.Accept(); err != nil { // the caller is connecting
		t.Fatal(err)
	}
	w.Move("k0", a.Worker)
	select {
	case err := <-done:
		if err != nil || w.Count("x") != 1 {
			t.Errorf("%v; accepted %d times", err, w.Count("x"))
		}
	case <-time.After(4 * time.Second): // before the attempt to connect has failed
		t.Error("the call still waits for the silent worker")
	}
}

// Calls without a key aren't sent; who sends them by itself is refused, and so are keys that aren't in the space.
func TestKeysThatAreNotThere(t *testing.T) {
	w := newWorld(t)
	a := w.join("a")
	w.Owns(a.Worker, shardtest.Names...)
	r := w.Router()
	conn := w.client(r, shardgrpc.Options{})
	two := metadata.AppendToOutgoingContext(t.Context(), shardgrpc.KeyHeader, "k0", shardgrpc.KeyHeader, "k1")
	want(t, "no key", write(t.Context(), conn, "", "x"), codes.InvalidArgument)
	want(t, "two keys", write(two, conn, "", "x"), codes.InvalidArgument)
	want(t, "a key that isn't there", write(t.Context(), conn, "other", "x"), codes.Unavailable)
	if w.Asked() != "" {
		t.Errorf("asked %q", w.Asked())
	}
	plain, err := grpc.NewClient(a.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	want(t, "no key", write(t.Context(), plain, "", "x"), codes.InvalidArgument)
	want(t, "two keys", write(two, plain, "", "x"), codes.InvalidArgument)
	err = write(t.Context(), plain, "other", "x")
	want(t, "a key that isn't there", err, codes.FailedPrecondition)
	if wrong := shardgrpc.WrongOwner(err); wrong == nil || wrong.Now != "" || w.Count("x") != 0 {
		t.Errorf("%+v; accepted %d times", wrong, w.Count("x"))
	}
}

// The key may be in the request: the worker finds it in the metadata.
func TestAKeyOfTheRequest(t *testing.T) {
	w := newWorld(t)
	a := w.join("a")
	w.Owns(a.Worker, shardtest.Names...)
	conn := w.client(w.Router(), shardgrpc.Options{Key: func(method string, _ metadata.MD, req any) string {
		text, _ := req.(*wrapperspb.StringValue)
		key, _, _ := strings.Cut(text.GetValue(), ":")
		if method != writeMethod {
			return ""
		}
		return key
	}})
	if err := write(t.Context(), conn, "", "k3:x"); err != nil || w.Count("k3:x") != 1 {
		t.Errorf("%v; accepted %v", err, w.Accepted())
	}
	want(t, "no key", write(t.Context(), conn, "", ":x"), codes.InvalidArgument)
}

// The context of a call and of a stream ends when the slice has been drained.
func TestTheContextEndsWithTheSlice(t *testing.T) {
	w := newWorld(t)
	a, b := w.join("a"), w.join("b")
	w.Owns(a.Worker, "k0")
	ss := begin(t.Context(), t, w.client(w.Router(), shardgrpc.Options{}), "k0")
	if err := errors.Join(ss.SendMsg(wrapperspb.String("x")), ss.RecvMsg(&wrapperspb.StringValue{})); err != nil {
		t.Fatal(err)
	}
	w.Move("k0", b.Worker)
	w.Owns(b.Worker, "k0")
	_ = ss.SendMsg(wrapperspb.String("y"))
	err := ss.RecvMsg(&wrapperspb.StringValue{})
	if wrong := shardgrpc.WrongOwner(err); wrong == nil || w.Count("y") != 0 {
		t.Errorf("%v; accepted %d times", err, w.Count("y"))
	}
}

// With TLS, a worker proves the host of its own address, or the name that grpc.WithAuthority gives.
func TestWorkersProveTheirHosts(t *testing.T) {
	certified := httptest.NewTLSServer(nil) // its certificate is of 127.0.0.1 and example.com
	defer certified.Close()
	w := newWorld(t)
	w.creds = credentials.NewTLS(&tls.Config{Certificates: certified.TLS.Certificates, MinVersion: tls.VersionTLS13})
	a := w.join("a")
	w.Owns(a.Worker, shardtest.Names...)
	r := w.Router()
	roots := x509.NewCertPool()
	roots.AddCert(certified.Certificate())
	for authority, code := range map[string]codes.Code{"": codes.OK, "example.com": codes.OK, "other.org": codes.Unavailable} {
		opts := []grpc.DialOption{grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS13}))}
		if authority != "" {
			opts = append(opts, grpc.WithAuthority(authority))
		}
		conn, err := shardgrpc.NewClient(r, impatient, opts...)
		if err != nil {
			t.Fatal(err)
		}
		want(t, "as "+authority, write(t.Context(), conn, "k0", "x"), code)
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}
