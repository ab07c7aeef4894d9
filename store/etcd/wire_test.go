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
	creations   []int64  // revisions at which watches were to begin
	compactions int      // watches that ended because their revision had been compacted
	noLeader    int      // watch streams that ended because the member lost its leader
	spoil       func(method string, err error) error
	beforeWatch func(revision int64) // called before a watch is begun
	beforeRead  func()
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
	if resp, ok := m.(*pb.WatchResponse); ok && err == nil && resp.CompactRevision != 0 {
		s.wire.note(func() { s.wire.compactions++ })
	}
	if err != nil && isNoLeader(err) {
		s.wire.note(func() { s.wire.noLeader++ })
	}
	return err
}
