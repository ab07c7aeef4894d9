package etcd

import (
	"context"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// wire is what a client sends and receives.
type wire struct {
	mu          sync.Mutex
	calls       []string // methods of the requests with one answer
	reads       int      // that were answered
	streams     int      // of watches
	sent        int      // messages on the streams of watches
	creations   []int64  // revisions at which watches were to begin
	begun       int      // watches that the server began
	compactions int      // watches that ended because their revision had been compacted
	noLeader    int      // watch streams that ended because the member lost its leader
	spoil       func(method string, err error) error
	beforeWatch func(revision int64) // called before a watch is begun
	beforeRead  func()
	shut        chan struct{} // what watches bring is held back until it is closed; nil for not at all
}

// hold has what watches bring held back from the next message on, until release is called.
func (w *wire) hold() (release func()) {
	shut := make(chan struct{})
	w.note(func() { w.shut = shut })
	return sync.OnceFunc(func() { close(shut) })
}

// requests returns how many requests and messages of watches were sent.
func (w *wire) requests() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.calls) + w.sent
}

func (w *wire) options() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(w.unary), grpc.WithChainStreamInterceptor(w.stream)}
}

func (w *wire) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	w.mu.Lock()
	w.calls = append(w.calls, method)
	spoil, beforeRead := w.spoil, w.beforeRead
	w.mu.Unlock()
	if beforeRead != nil && method == rangeCall {
		beforeRead()
	}
	err := invoke(ctx, method, req, reply, cc, opts...)
	if spoil != nil {
		err = spoil(method, err)
	}
	if method == rangeCall && err == nil {
		w.note(func() { w.reads++ })
	}
	return err
}

func (w *wire) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := streamer(ctx, desc, cc, method, opts...)
	if err != nil {
		return nil, err
	}
	w.note(func() { w.streams++ })
	return &wireStream{s, w}, nil
}

func (w *wire) note(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// take returns the methods called since it was last called.
func (w *wire) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	calls := w.calls
	w.calls = nil
	return calls
}

type wireStream struct {
	grpc.ClientStream
	wire *wire
}

func (s *wireStream) SendMsg(m any) error {
	s.wire.note(func() { s.wire.sent++ })
	if req, ok := m.(*pb.WatchRequest); ok && req.GetCreateRequest() != nil {
		var before func(int64)
		s.wire.note(func() {
			s.wire.creations = append(s.wire.creations, req.GetCreateRequest().StartRevision)
			before = s.wire.beforeWatch
		})
		if before != nil {
			before(req.GetCreateRequest().StartRevision)
		}
	}
	return s.ClientStream.SendMsg(m)
}

func (s *wireStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	var shut chan struct{}
	s.wire.note(func() { shut = s.wire.shut })
	if shut != nil {
		<-shut
	}
	if resp, ok := m.(*pb.WatchResponse); ok && err == nil && resp.Created {
		s.wire.note(func() { s.wire.begun++ })
	}
	if resp, ok := m.(*pb.WatchResponse); ok && err == nil && resp.CompactRevision != 0 {
		s.wire.note(func() { s.wire.compactions++ })
	}
	if err != nil && isNoLeader(err) {
		s.wire.note(func() { s.wire.noLeader++ })
	}
	return err
}
