package shardgrpc_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
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

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/shard"
	"github.com/leasehold/leasehold/shard/shardgrpc"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a space with workers behind real gRPC servers on loopback.
type world struct {
	t  *testing.T
	st store.Store
	db *memory.DB

	creds credentials.TransportCredentials // of servers; nil for none

	mu       sync.Mutex
	marks    map[string]fence.Mark // of keys
	accepted map[string]int        // by what was written
	hits     []string              // which worker was asked
}

var names = []string{"k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"}

func newWorld(t *testing.T) *world {
	db := memory.NewDB(memory.Options{})
	w := &world{t: t, db: db, st: db.Open(), marks: map[string]fence.Mark{}, accepted: map[string]int{}}
	t.Cleanup(func() { w.st.Close() })
	return w
}

type worker struct {
	*shard.Owner
	name, address string
	srv           *grpc.Server

	instead atomic.Pointer[func(context.Context) error] // of what a worker does
}

const ttl = 5 * time.Second

// join starts a worker that counts what it accepts.
func (w *world) join(name string) *worker { return w.joinAt(name, "127.0.0.1:0") }

func (w *world) joinAt(name, address string) *worker {
	w.t.Helper()
	p := &worker{name: name}
	listener, err := (&net.ListenConfig{}).Listen(w.t.Context(), "tcp", address)
	if err != nil {
		w.t.Fatal(err)
	}
	p.address = listener.Addr().String()
	st := w.db.Open()
	m, err := lease.NewManager(st, lease.Options{TTL: ttl})
	if err != nil {
		w.t.Fatal(err)
	}
	p.Owner, err = shard.Join(w.t.Context(), m, shard.Space{Name: "s", Names: names}, shard.Worker{Name: name, Address: p.address, Strategy: settled{}})
	if err != nil {
		w.t.Fatal(err)
	}
	hit := func(ctx context.Context) error {
		w.mu.Lock()
		w.hits = append(w.hits, name)
		w.mu.Unlock()
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
	w.t.Cleanup(func() {
		p.srv.Stop()
		if err := errors.Join(<-served, p.Close(), m.Close(), st.Close()); err != nil {
			w.t.Error(err)
		}
	})
	return p
}

// settled gives the first worker what nobody owns, and lets the rest stay where a test has moved it.
type settled struct{}

func (settled) Plan(s *shard.State) (moves []shard.Move) {
	for i, sl := range s.Slices {
		for n, to := range s.Workers {
			if !to.Goes && (sl.Owner < 0 || s.Workers[sl.Owner].Goes) && sl.Next < 0 {
				moves = append(moves, shard.Move{Slice: i, To: n})
				break
			}
		}
	}
	return moves
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

// accept is the program behind the interceptors: a guard keeps a mark for each key.
func (w *world) accept(ctx context.Context, text string) error {
	s := shardgrpc.Slice(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := s.Check(); err != nil {
		return err
	}
	mark, err := w.marks[s.Name].Admit(s.Name, s.Sequencer().Holder, s.Token)
	if err != nil {
		w.t.Error(err)
	}
	w.marks[s.Name] = mark
	w.accepted[text]++
	return nil
}

// asked says which workers were asked, in order.
func (w *world) asked() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.hits, " ")
}

func (w *world) count(text string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.accepted[text]
}

func (w *world) router() *shard.Router {
	w.t.Helper()
	r, err := shard.NewRouter(w.t.Context(), w.st, "s", shard.RouterOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(r.Close)
	return r
}

// until blocks until what says true.
func (w *world) until(what string, ok func() bool) {
	w.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.After(20 * time.Second); !ok(); {
		select {
		case <-tick.C:
		case <-late:
			w.t.Fatalf("not within 20 s: %s", what)
		}
	}
}

func (w *world) owns(p *worker, keys ...string) {
	w.t.Helper()
	w.until(fmt.Sprint(p.name, " owns ", keys), func() bool {
		for _, k := range keys {
			if _, err := p.Check(k); err != nil {
				return false
			}
		}
		return true
	})
}

func (w *world) move(key string, p *worker) {
	w.t.Helper()
	if err := shard.RequestMove(w.t.Context(), w.st, "s", key, p.name); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) client(r *shard.Router, opts shardgrpc.Options) *grpc.ClientConn {
	w.t.Helper()
	conn, err := shardgrpc.NewClient(r, opts, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { conn.Close() })
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
	w.owns(a, names[:1]...)
	r := w.router()
	ctx, stop := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	var mu sync.Mutex
	written := map[string]bool{}
	for i := range 4 {
		conn := w.client(r, shardgrpc.Options{})
		callers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				text := fmt.Sprint(i, "/", n)
				if err := write(t.Context(), conn, names[n%len(names)], text); err != nil { // it waits for the next owner
					t.Errorf("%s: %v", text, err)
				}
				mu.Lock()
				written[text] = true
				mu.Unlock()
			}
		})
	}
	for n := range 30 {
		to := []*worker{b, a}[n/len(names)%2]
		key := names[n%len(names)]
		w.move(key, to)
		w.owns(to, key)
	}
	stop()
	callers.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for text, n := range w.accepted {
		if n != 1 || !written[text] {
			t.Errorf("%s was accepted %d times; its caller was told so: %t", text, n, written[text])
		}
	}
	if len(written) != len(w.accepted) || len(written) < 100 {
		t.Errorf("callers were told of %d writes, and %d were accepted", len(written), len(w.accepted))
	}
	t.Logf("%d writes accepted, 30 moves", len(written))
}

// A caller whose router is late is told the owner by the wrong worker, once, and its call arrives there.
func TestAWrongOwnerOnce(t *testing.T) {
	w := newWorld(t)
	a, b := w.join("a"), w.join("b")
	w.owns(a, "k0")
	r := w.router()
	r.Close() // it knows what it knows
	w.move("k0", b)
	w.owns(b, "k0")
	w.until("a knows the owner", func() bool {
		var wrong *shard.WrongOwner
		_, err := a.Check("k0")
		return errors.As(err, &wrong) && wrong.Now == b.address
	})
	conn := w.client(r, impatient)
	if err := write(t.Context(), conn, "k0", "x"); err != nil || w.asked() != "a b" || w.count("x") != 1 {
		t.Errorf("%v; asked %s; accepted %d times", err, w.asked(), w.count("x"))
	}

	// A stream isn't begun again, and its caller is told.
	ss := begin(t.Context(), t, conn, "k0")
	_ = ss.SendMsg(wrapperspb.String("y")) // it may have been refused by then
	err := ss.RecvMsg(&wrapperspb.StringValue{})
	want(t, "a stream", err, codes.FailedPrecondition)
	if wrong := shardgrpc.WrongOwner(err); wrong == nil || wrong.Now != b.address || wrong.Token == 0 || w.count("y") != 0 {
		t.Errorf("%v, %+v; accepted %d times", err, wrong, w.count("y"))
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
	a, b := w.join("a"), w.join("b")
	w.owns(a, "k0")
	r := w.router()
	conn := w.client(r, shardgrpc.Options{})
	if err := write(t.Context(), conn, "k0", "w"); err != nil {
		t.Fatal(err)
	}
	late := w.router()
	late.Close()
	old := w.client(late, shardgrpc.Options{})
	if err := a.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.owns(b, names...)
	a.srv.GracefulStop() // the way of a worker that leaves
	for _, c := range []*grpc.ClientConn{conn, old} {
		if err := write(t.Context(), c, "k0", "x"); err != nil {
			t.Error(err)
		}
	}
	again := w.joinAt("a2", a.address)
	w.move("k0", again)
	if err := write(t.Context(), conn, "k0", "y"); err != nil {
		t.Error(err)
	}
	w.owns(again, "k0")
	if err := write(t.Context(), conn, "k0", "z"); err != nil || w.count("x") != 2 || w.count("y") != 1 || w.count("z") != 1 {
		t.Errorf("%v; accepted %v", err, w.accepted)
	}
	// Nobody is there any more: nothing is sent, and the caller is told.
	again.srv.Stop()
	before := w.asked()
	want(t, "without a worker", write(t.Context(), w.client(r, impatient), "k0", "n"), codes.Unavailable)
	if w.asked() != before {
		t.Errorf("asked %q", w.asked())
	}
}

// A call isn't made again where the first worker may have carried it out.
func TestNothingIsSentInVain(t *testing.T) {
	w := newWorld(t)
	a, b := w.join("a"), w.join("b")
	w.owns(a, "k0")
	r := w.router()
	r.Close()
	w.move("k0", b)
	w.owns(b, "k0")
	n := 0
	for code, answer := range map[codes.Code]func(context.Context) error{
		codes.FailedPrecondition: func(context.Context) error { return status.Error(codes.FailedPrecondition, "of the program") },
		codes.Unavailable:        func(context.Context) error { return status.Error(codes.Unavailable, "of a proxy") },
		codes.Aborted:            func(context.Context) error { return status.Error(codes.Aborted, "of the program") },
	} {
		a.instead.Store(&answer)
		want(t, "the answer stands", write(t.Context(), w.client(r, shardgrpc.Options{}), "k0", "x"), code)
		if n++; strings.Count(w.asked(), "a") != n || strings.Contains(w.asked(), "b") {
			t.Errorf("%v: asked %q", code, w.asked())
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
	if strings.Contains(w.asked(), "b") || w.count("x") != 0 {
		t.Errorf("asked %q", w.asked())
	}
}

var thenB = regexp.MustCompile(`^(a )+b( b)*$`)

// A call waits while its slice is drained, and is then carried out once, by the next owner; not beyond its deadline, or Wait.
func TestACallWaitsForTheNextOwner(t *testing.T) {
	w := newWorld(t)
	a, b := w.join("a"), w.join("b")
	w.owns(a, "k0")
	r := w.router()
	var asked atomic.Int32
	self := func(context.Context) error { // as while the slice is drained
		if asked.Add(1) == 3 {
			w.move("k0", b)
		}
		return shardgrpc.Refuse(&shard.WrongOwner{Now: a.address})
	}
	a.instead.Store(&self)
	// The router may hear of the owner before the owner does: then b is asked again.
	if err := write(t.Context(), w.client(r, shardgrpc.Options{}), "k0", "x"); err != nil || w.count("x") != 1 || !thenB.MatchString(w.asked()) {
		t.Errorf("%v; accepted %d times; asked %q", err, w.count("x"), w.asked())
	}
	b.instead.Store(&self)
	want(t, "after Wait", write(t.Context(), w.client(r, shardgrpc.Options{Wait: 30 * time.Millisecond}), "k0", "y"), codes.FailedPrecondition)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	err := write(ctx, w.client(r, shardgrpc.Options{Wait: time.Hour}), "k0", "z")
	if c := status.Code(err); c != codes.DeadlineExceeded && c != codes.FailedPrecondition {
		t.Errorf("after the deadline: %v", err)
	}
	if w.count("y") != 0 || w.count("z") != 0 {
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
	w.owns(a, "k0")
	r := w.router()
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
	if err := errors.Join(<-done, <-done); err != nil || w.count("y") != 1 || w.count("s") != 1 || w.count("x") != 0 {
		t.Errorf("%v; accepted %v", err, w.accepted)
	}
}

// A call to a worker that doesn't answer its connection goes to the next owner as soon as the key has one.
func TestAKeyThatMovesWhileItsWorkerIsSilent(t *testing.T) {
	w := newWorld(t)
	a := w.join("a")
	w.owns(a, "k0")
	silent, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0") // connects, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	st := w.db.Open()
	defer st.Close()
	m, err := lease.NewManager(st, lease.Options{TTL: ttl})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	b, err := shard.Join(t.Context(), m, shard.Space{Name: "s", Names: names}, shard.Worker{Name: "b", Address: silent.Addr().String(), Strategy: settled{}})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := shard.RequestMove(t.Context(), w.st, "s", "k0", "b"); err != nil {
		t.Fatal(err)
	}
	w.until("b owns k0", func() bool { _, err := b.Check("k0"); return err == nil })
	r := w.router()
	done := make(chan error, 1)
	go func() { done <- write(t.Context(), w.client(r, shardgrpc.Options{}), "k0", "x") }()
	if _, err := silent.Accept(); err != nil { // the caller is connecting
		t.Fatal(err)
	}
	w.move("k0", a)
	select {
	case err := <-done:
		if err != nil || w.count("x") != 1 {
			t.Errorf("%v; accepted %d times", err, w.count("x"))
		}
	case <-time.After(4 * time.Second): // before the attempt to connect has failed
		t.Error("the call still waits for the silent worker")
	}
}

// Calls without a key aren't sent; who sends them by itself is refused, and so are keys that aren't in the space.
func TestKeysThatAreNotThere(t *testing.T) {
	w := newWorld(t)
	a := w.join("a")
	w.owns(a, names...)
	r := w.router()
	conn := w.client(r, shardgrpc.Options{})
	two := metadata.AppendToOutgoingContext(t.Context(), shardgrpc.KeyHeader, "k0", shardgrpc.KeyHeader, "k1")
	want(t, "no key", write(t.Context(), conn, "", "x"), codes.InvalidArgument)
	want(t, "two keys", write(two, conn, "", "x"), codes.InvalidArgument)
	want(t, "a key that isn't there", write(t.Context(), conn, "other", "x"), codes.Unavailable)
	if w.asked() != "" {
		t.Errorf("asked %q", w.asked())
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
	if wrong := shardgrpc.WrongOwner(err); wrong == nil || wrong.Now != "" || w.count("x") != 0 {
		t.Errorf("%+v; accepted %d times", wrong, w.count("x"))
	}
}

// The key may be in the request: the worker finds it in the metadata.
func TestAKeyOfTheRequest(t *testing.T) {
	w := newWorld(t)
	a := w.join("a")
	w.owns(a, names...)
	conn := w.client(w.router(), shardgrpc.Options{Key: func(method string, _ metadata.MD, req any) string {
		text, _ := req.(*wrapperspb.StringValue)
		key, _, _ := strings.Cut(text.GetValue(), ":")
		if method != writeMethod {
			return ""
		}
		return key
	}})
	if err := write(t.Context(), conn, "", "k3:x"); err != nil || w.count("k3:x") != 1 {
		t.Errorf("%v; accepted %v", err, w.accepted)
	}
	want(t, "no key", write(t.Context(), conn, "", ":x"), codes.InvalidArgument)
}

// The context of a call and of a stream ends when the slice has been drained.
func TestTheContextEndsWithTheSlice(t *testing.T) {
	w := newWorld(t)
	a, b := w.join("a"), w.join("b")
	w.owns(a, "k0")
	ss := begin(t.Context(), t, w.client(w.router(), shardgrpc.Options{}), "k0")
	if err := errors.Join(ss.SendMsg(wrapperspb.String("x")), ss.RecvMsg(&wrapperspb.StringValue{})); err != nil {
		t.Fatal(err)
	}
	w.move("k0", b)
	w.owns(b, "k0")
	_ = ss.SendMsg(wrapperspb.String("y"))
	err := ss.RecvMsg(&wrapperspb.StringValue{})
	if wrong := shardgrpc.WrongOwner(err); wrong == nil || w.count("y") != 0 {
		t.Errorf("%v; accepted %d times", err, w.count("y"))
	}
}

// With TLS, a worker proves the host of its own address, or the name that grpc.WithAuthority gives.
func TestWorkersProveTheirHosts(t *testing.T) {
	certified := httptest.NewTLSServer(nil) // its certificate is of 127.0.0.1 and example.com
	defer certified.Close()
	w := newWorld(t)
	w.creds = credentials.NewTLS(&tls.Config{Certificates: certified.TLS.Certificates, MinVersion: tls.VersionTLS13})
	a := w.join("a")
	w.owns(a, names...)
	r := w.router()
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
