package resources

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencegrpc"
	"github.com/leasehold/leasehold/fence/fencehttp"
	"github.com/leasehold/leasehold/fence/filemarks"
)

// ledger is a resource in the memory of the host, behind HTTP or gRPC.
type ledger struct {
	mu    sync.Mutex
	lines map[string][]string // by lease name
}

func (l *ledger) add(name, line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines[name] = append(l.lines[name], line)
}

func (l *ledger) log(name string) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	text, err := json.Marshal(l.lines[name])
	if err != nil { // nothing that consists of strings
		return nil
	}
	return text
}

// open is a guard that admits everything.
type open struct{}

func (open) Check(context.Context, fence.Sequencer) error { return nil }

// serve serves a ledger of that kind until stop is called, with its marks, if it keeps any, in dir.
func serve(ctx context.Context, kind, dir string, source fence.Source) (address string, stop func() error, err error) {
	var guard fence.Guard = open{}
	closing := func() error { return nil }
	switch {
	case source == nil:
	case kind == "http-online":
		guard, err = fence.NewOnline(source, fence.OnlineOptions{})
	default:
		var marks *filemarks.Marks
		if marks, err = filemarks.Open(filepath.Join(dir, "marks")); err == nil {
			closing = marks.Close
			guard, err = fence.NewOffline(marks)
		}
	}
	if err != nil {
		return "", nil, err
	}
	lis, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, errors.Join(err, closing())
	}
	l := &ledger{lines: map[string][]string{}}
	served := make(chan error, 1)
	if kind == "grpc" {
		server := grpc.NewServer(grpc.ChainUnaryInterceptor(fencegrpc.UnaryServerInterceptor(guard, fencegrpc.Options{
			Open: func(_ context.Context, method string) bool { return method == readMethod },
		})))
		server.RegisterService(&service, l)
		go func() { served <- server.Serve(lis) }()
		return lis.Addr().String(), func() error { server.Stop(); return errors.Join(<-served, closing()) }, nil
	}
	server := &http.Server{Handler: l.handler(guard, kind == "http-online")}
	go func() { served <- server.Serve(lis) }()
	return "http://" + lis.Addr().String(), func() error {
		err := server.Close()
		if e := <-served; !errors.Is(e, http.ErrServerClosed) {
			err = errors.Join(err, e)
		}
		return errors.Join(err, closing())
	}, nil
}

// handler is the ledger over HTTP. An online guard knows nothing of what is on its way, so there
// check and write are in turn.
func (l *ledger) handler(guard fence.Guard, inTurn bool) http.Handler {
	guarded := fencehttp.Handler(guard, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			_, _ = w.Write(l.log(r.URL.Query().Get("name")))
			return
		}
		line, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<10))
		s, ok := fencehttp.From(r.Context())
		if err != nil || !ok {
			http.Error(w, "want a line and a sequencer", http.StatusBadRequest)
			return
		}
		l.add(s.Name, string(line))
	}), fencehttp.Options{})
	if !inTurn {
		return guarded
	}
	var turn sync.Mutex
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		turn.Lock()
		defer turn.Unlock()
		guarded.ServeHTTP(w, r)
	})
}

// overHTTP is a client of a ledger.
type overHTTP struct {
	url  string
	base *http.Transport
	s    fence.Sequencer // of the request under way
	http http.Client
}

func openHTTP(_ context.Context, address string) (Resource, error) {
	r := &overHTTP{url: address, base: &http.Transport{}}
	r.http.Transport = fencehttp.Transport(r.base, func() (string, error) { return r.s.String(), nil })
	return r, nil
}

func (r *overHTTP) Write(ctx context.Context, s fence.Sequencer, line string) error {
	r.s = s
	_, err := r.do(ctx, &r.http, http.MethodPost, r.url, line)
	return err
}

func (r *overHTTP) Log(ctx context.Context, name string) (lines []string, err error) {
	text, err := r.do(ctx, &http.Client{Transport: r.base}, http.MethodGet, r.url+"?name="+url.QueryEscape(name), "")
	if err != nil {
		return nil, err
	}
	return lines, json.Unmarshal(text, &lines)
}

func (r *overHTTP) do(ctx context.Context, client *http.Client, method, url, body string) (text []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader([]byte(body)))
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	text, err = io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, text)
	}
	return text, err
}

func (r *overHTTP) Close() error { r.base.CloseIdleConnections(); return nil }

// The methods of the ledger over gRPC.
const (
	writeMethod = "/soak.Ledger/Write"
	readMethod  = "/soak.Ledger/Read"
)

// service is what a generated file would say of a ledger.
var service = grpc.ServiceDesc{
	ServiceName: "soak.Ledger", HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{
		method("Write", func(ctx context.Context, l *ledger, text string) (string, error) {
			s, ok := fencegrpc.From(ctx)
			if !ok {
				return "", errors.New("there is no sequencer")
			}
			l.add(s.Name, text)
			return "", nil
		}),
		method("Read", func(_ context.Context, l *ledger, text string) (string, error) { return string(l.log(text)), nil }),
	},
}

func method(name string, handle func(ctx context.Context, l *ledger, text string) (string, error)) grpc.MethodDesc {
	return grpc.MethodDesc{
		MethodName: name,
		Handler: func(srv any, ctx context.Context, decode func(any) error, between grpc.UnaryServerInterceptor) (any, error) {
			var in wrapperspb.StringValue
			if err := decode(&in); err != nil {
				return nil, err
			}
			return between(ctx, &in, &grpc.UnaryServerInfo{Server: srv, FullMethod: "/soak.Ledger/" + name}, func(ctx context.Context, _ any) (any, error) {
				out, err := handle(ctx, srv.(*ledger), in.GetValue())
				return wrapperspb.String(out), err
			})
		},
	}
}

// overGRPC is a client of a ledger.
type overGRPC struct {
	s         fence.Sequencer  // of the call under way
	conn      *grpc.ClientConn // sends it
	unguarded *grpc.ClientConn
}

func openGRPC(_ context.Context, address string) (_ Resource, err error) {
	r := &overGRPC{}
	plain := grpc.WithTransportCredentials(insecure.NewCredentials())
	r.conn, err = grpc.NewClient(address, plain,
		grpc.WithChainUnaryInterceptor(fencegrpc.UnaryClientInterceptor(func() (string, error) { return r.s.String(), nil })))
	if err != nil {
		return nil, err
	}
	r.unguarded, err = grpc.NewClient(address, plain)
	return r, err
}

func (r *overGRPC) Write(ctx context.Context, s fence.Sequencer, line string) error {
	r.s = s
	return r.conn.Invoke(ctx, writeMethod, wrapperspb.String(line), &wrapperspb.StringValue{})
}

func (r *overGRPC) Log(ctx context.Context, name string) (lines []string, err error) {
	var out wrapperspb.StringValue
	if err := r.unguarded.Invoke(ctx, readMethod, wrapperspb.String(name), &out); err != nil {
		return nil, err
	}
	return lines, json.Unmarshal([]byte(out.GetValue()), &lines)
}

func (r *overGRPC) Close() error { return errors.Join(r.conn.Close(), r.unguarded.Close()) }
