package fencegrpc

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/leasehold/leasehold/fence"
)

// UnaryClientInterceptor sends the sequencer with every call. It calls sequencer before each call.
// If that returns an error, such as that of a lost lease, the call returns it and nothing is sent.
func UnaryClientInterceptor(sequencer func() (string, error)) grpc.UnaryClientInterceptor {
	return func(
		ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
	) error {
		text, err := sequencer()
		if err != nil {
			return notSent(err)
		}
		return told(invoke(bearing(ctx, text), method, req, reply, cc, opts...))
	}
}

// StreamClientInterceptor sends the sequencer with every stream. It calls sequencer before each
// stream and before each message that is sent. After an error of it, or in another term than the
// stream began in, nothing more is sent and the stream is aborted.
func StreamClientInterceptor(sequencer func() (string, error)) grpc.StreamClientInterceptor {
	return func(
		ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, stream grpc.Streamer, opts ...grpc.CallOption,
	) (grpc.ClientStream, error) {
		text, err := sequencer()
		if err != nil {
			return nil, notSent(err)
		}
		ctx, cancel := context.WithCancelCause(bearing(ctx, text))
		cs, err := stream(ctx, desc, cc, method, opts...)
		if err != nil {
			cancel(err)
			return nil, told(err)
		}
		return &clientStream{cs, !desc.ServerStreams, text, sequencer, cancel}, nil
	}
}

// bearing returns ctx with the sequencer in its outgoing metadata, and no other.
func bearing(ctx context.Context, text string) context.Context {
	md, _ := metadata.FromOutgoingContext(ctx) // a copy
	if md == nil {
		md = metadata.MD{}
	}
	md.Set(fence.MetadataKey, text)
	return metadata.NewOutgoingContext(ctx, md)
}

func notSent(err error) error { return fmt.Errorf("not sent: %w", err) }

var errOtherTerm = errors.New("the stream was begun in an earlier term: begin another one")

// clientStream is a stream under a sequencer.
type clientStream struct {
	grpc.ClientStream
	single    bool // it receives one message at most
	text      string
	sequencer func() (string, error)
	cancel    context.CancelCauseFunc // of the stream
}

// SendMsg implements [grpc.ClientStream].
func (c *clientStream) SendMsg(m any) error {
	text, err := c.sequencer()
	if err == nil && text != c.text {
		err = errOtherTerm
	}
	if err != nil {
		c.cancel(err)
		return notSent(err)
	}
	return told(c.ClientStream.SendMsg(m))
}

// RecvMsg implements [grpc.ClientStream].
func (c *clientStream) RecvMsg(m any) error {
	err := c.ClientStream.RecvMsg(m)
	if err != nil || c.single { // it has ended
		c.cancel(err)
	}
	return told(err)
}

// Header implements [grpc.ClientStream].
func (c *clientStream) Header() (metadata.MD, error) {
	md, err := c.ClientStream.Header()
	return md, told(err)
}
