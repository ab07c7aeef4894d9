package fencegrpc_test

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/fence/fencegrpc"
	"github.com/leasehold/leasehold/fence/fencetest"
)

// terms is a source that says what began last, and marks that are gone with the test.
type terms struct{ m sync.Map }

func (t *terms) begin(s fence.Sequencer) {
	t.m.Store(s.Name, fence.Mark{Token: s.Token, Holder: s.Holder})
}

func (t *terms) Load(_ context.Context, resource string) (fence.Mark, error) {
	v, _ := t.m.Load(resource)
	mark, _ := v.(fence.Mark)
	return mark, nil
}

func (t *terms) Save(_ context.Context, resource string, mark fence.Mark) error {
	t.m.Store(resource, mark)
	return nil
}

func (t *terms) Current(ctx context.Context, name string) (fence.Holding, error) {
	mark, err := t.Load(ctx, name)
	return fence.Holding{Holder: mark.Holder, Token: mark.Token}, err
}

func offline(t *testing.T) fence.Guard {
	t.Helper()
	g, err := fence.NewOffline(&terms{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func online(t *testing.T) (fence.Guard, *terms) {
	t.Helper()
	src := &terms{}
	g, err := fence.NewOnline(src, fence.OnlineOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return g, src
}

func as(text string) func() (string, error) { return func() (string, error) { return text, nil } }

// The story over calls and over streams: the client learns from the status what the guard has said.
func TestStory(t *testing.T) {
	asked, src := online(t)
	for how, send := range map[string]func(context.Context, *grpc.ClientConn, string) error{"calls": call, "streams": streamed} {
		for kind, guard := range map[string]fence.Guard{"offline": offline(t), "online": asked} {
			t.Run(how+", "+kind, func(t *testing.T) {
				l := &ledger{}
				addr := l.serve(t, guard, fencegrpc.Options{Name: func(context.Context, string) string { return t.Name() }})
				current := ""
				conn := dial(t, addr, func() (string, error) { return current, nil })
				fencetest.Story(t, func(ctx context.Context, s fence.Sequencer) error {
					current = s.String()
					return send(ctx, conn, "R")
				}, fencetest.Options{Begin: src.begin, Written: l.written})
			})
		}
	}
}

func TestRace(t *testing.T) {
	l := &ledger{}
	addr := l.serve(t, offline(t), fencegrpc.Options{})
	conn := dial(t, addr, nil)
	fencetest.Race(t, func(ctx context.Context, s fence.Sequencer) error {
		err := call(metadata.AppendToOutgoingContext(ctx, fence.MetadataKey, s.String()), conn, "R")
		if status.Code(err) == codes.FailedPrecondition {
			return &fence.StaleError{} // this client has no interceptor that reads it
		}
		return err
	}, l.written)
}

func TestRefusals(t *testing.T) {
	keys, err := fence.NewKeys([]byte("0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	signed, err := keys.Sign(fence.Sequencer{Name: "billing", Holder: "a", Token: 5})
	if err != nil {
		t.Fatal(err)
	}
	l := &ledger{}
	named := func(_ context.Context, method string) string {
		return map[string]string{write: "billing", feed: "billing"}[method]
	}
	for _, c := range []struct {
		what   string
		opts   fencegrpc.Options
		guard  fence.Guard
		texts  []string
		code   codes.Code
		reason string
	}{
		{"signed", fencegrpc.Options{Keys: keys}, offline(t), []string{signed}, codes.OK, ""},
		{"not signed", fencegrpc.Options{Keys: keys}, offline(t), []string{"v1;5;billing;a"}, codes.PermissionDenied, "SEQUENCER_FORGED"},
		{"signed for others", fencegrpc.Options{}, offline(t), []string{signed}, codes.InvalidArgument, "SEQUENCER_INVALID"},
		{"nonsense", fencegrpc.Options{}, offline(t), []string{"nonsense"}, codes.InvalidArgument, "SEQUENCER_INVALID"},
		{"twice", fencegrpc.Options{}, offline(t), []string{"v1;5;billing;a", "v1;5;billing;a"}, codes.InvalidArgument, "SEQUENCER_INVALID"},
		{"missing", fencegrpc.Options{}, offline(t), nil, codes.FailedPrecondition, "SEQUENCER_MISSING"},
		{"its name", fencegrpc.Options{Name: named}, offline(t), []string{"v1;5;billing;a"}, codes.OK, ""},
		{"another name", fencegrpc.Options{Name: named}, offline(t), []string{"v1;5;madeup;a"}, codes.PermissionDenied, "SEQUENCER_OTHER_NAME"},
		{"guard is down", fencegrpc.Options{}, failing{errors.New("store down")}, []string{"v1;5;billing;a"}, codes.Unavailable, "GUARD_UNAVAILABLE"},
	} {
		conn := dial(t, l.serve(t, c.guard, c.opts), nil)
		for how, send := range map[string]func(context.Context, *grpc.ClientConn, string) error{"call": call, "stream": streamed} {
			before := len(l.written())
			ctx := t.Context()
			for _, text := range c.texts {
				ctx = metadata.AppendToOutgoingContext(ctx, fence.MetadataKey, text)
			}
			err := send(ctx, conn, "R")
			if status.Code(err) != c.code || detail(err).GetReason() != c.reason {
				t.Errorf("%s, %s: %v with %v, want %v %s", c.what, how, err, detail(err), c.code, c.reason)
			}
			if n := len(l.written()) - before; (n == 1) != (c.code == codes.OK) {
				t.Errorf("%s, %s: %d written", c.what, how, n)
			}
		}
	}
}

// detail returns what a status says beside its code and message.
func detail(err error) *errdetails.ErrorInfo {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok && info.GetDomain() == "leasehold" {
			return info
		}
	}
	return nil
}

type failing struct{ err error }

func (f failing) Check(context.Context, fence.Sequencer) error { return f.err }

// A client of another language reads from the status all that the guard knows.
func TestDetailOfStaleRefusal(t *testing.T) {
	stale := &fence.StaleError{Name: "billing", Got: 41, Current: 42, Holder: "web-2"}
	l := &ledger{}
	err := call(metadata.AppendToOutgoingContext(t.Context(), fence.MetadataKey, "v1;41;billing;a"), dial(t, l.serve(t, failing{stale}, fencegrpc.Options{}), nil), "R")
	want := map[string]string{"name": "billing", "got": "41", "current": "42", "holder": "web-2"}
	if !maps.Equal(detail(err).GetMetadata(), want) || status.Convert(err).Message() != stale.Error() {
		t.Errorf("%v with %v", err, detail(err))
	}
	// And with our interceptors it is both, the guard's error and the status.
	err = call(t.Context(), dial(t, l.serve(t, failing{stale}, fencegrpc.Options{}), as("v1;41;billing;a")), "R")
	var got *fence.StaleError
	if !errors.As(err, &got) || *got != *stale || !errors.Is(err, fence.ErrStale) || status.Code(err) != codes.FailedPrecondition {
		t.Errorf("%v", err)
	}
}

// A guard that the handler has by itself is heard too; its other errors are its own.
func TestHandlersOwnErrors(t *testing.T) {
	stale := &fence.StaleError{Name: "billing", Got: 5, Current: 6, Holder: "b"}
	for err, code := range map[error]codes.Code{
		stale: codes.FailedPrecondition, errors.New("x"): codes.Unknown, fence.ErrMalformed: codes.Unknown,
		status.Error(codes.NotFound, "no such account"): codes.NotFound,
	} {
		l := &ledger{err: err}
		conn := dial(t, l.serve(t, offline(t), fencegrpc.Options{}), as("v1;5;billing;a"))
		if got := call(t.Context(), conn, "R"); status.Code(got) != code || errors.Is(got, fence.ErrStale) != (err == stale) {
			t.Errorf("%v: %v, want %v", err, got, code)
		}
	}
}

func TestOpenMethods(t *testing.T) {
	l := &ledger{}
	addr := l.serve(t, offline(t), fencegrpc.Options{Open: func(_ context.Context, method string) bool { return method == feed }})
	conn := dial(t, addr, nil)
	if err := streamed(t.Context(), conn, "open"); err != nil {
		t.Errorf("%v", err)
	}
	if err := call(t.Context(), conn, "open"); detail(err).GetReason() != "SEQUENCER_MISSING" {
		t.Errorf("%v", err)
	}
	ctx := metadata.AppendToOutgoingContext(t.Context(), fence.MetadataKey, "nonsense")
	if err := streamed(ctx, conn, "open"); status.Code(err) != codes.InvalidArgument {
		t.Errorf("an open stream with a bad sequencer: %v", err)
	}
}

// A call of a later term tells those of the earlier one to end, and waits for them.
func TestLaterTermWaitsForCalls(t *testing.T) {
	l := &ledger{entry: make(chan struct{})}
	guard := offline(t)
	early, late := dial(t, l.serve(t, guard, fencegrpc.Options{}), as("v1;5;billing;a")), "v1;6;billing;b"
	ended := make(chan error, 1)
	go func() { ended <- call(t.Context(), early, "R1") }()
	<-l.entry
	after := &ledger{}
	if err := call(t.Context(), dial(t, after.serve(t, guard, fencegrpc.Options{}), as(late)), "R2"); err != nil {
		t.Error(err)
	}
	var stale *fence.StaleError
	want := fence.StaleError{Name: "billing", Got: 5, Current: 6, Holder: "b"}
	if err := <-ended; !errors.As(err, &stale) || *stale != want {
		t.Errorf("%v, want %+v", err, want)
	}
}

// With Messages, a stream that was begun in an earlier term ends with its next message; without, it goes on.
func TestMessages(t *testing.T) {
	for _, each := range []bool{true, false} {
		guard, src := online(t)
		l := &ledger{}
		src.begin(fence.Sequencer{Name: "billing", Holder: "a", Token: 5})
		conn := dial(t, l.serve(t, guard, fencegrpc.Options{Messages: each}), as("v1;5;billing;a"))
		stream, err := begin(t.Context(), conn)
		if err != nil {
			t.Fatal(err)
		}
		if err := line(stream, "R1"); err != nil {
			t.Fatal(err)
		}
		src.begin(fence.Sequencer{Name: "billing", Holder: "b", Token: 6})
		err = line(stream, "R2")
		var stale *fence.StaleError
		want := fence.StaleError{Name: "billing", Got: 5, Current: 6, Holder: "b"}
		if each && (!errors.As(err, &stale) || *stale != want) || !each && err != nil {
			t.Errorf("with Messages %t: %v", each, err)
		}
		if n := len(l.written()); n != map[bool]int{true: 1, false: 2}[each] {
			t.Errorf("with Messages %t: %d lines are written", each, n)
		}
		if !each {
			if err := stream.CloseSend(); err != nil {
				t.Error(err)
			}
		}
	}
}

// A holder that has lost its lease sends nothing, nor does a stream of an earlier term go on in a later one.
func TestLostHolder(t *testing.T) {
	var text string
	var lost error
	l := &ledger{}
	conn := dial(t, l.serve(t, offline(t), fencegrpc.Options{}), func() (string, error) { return text, lost })
	for _, c := range []struct {
		what string
		text string
		lost error
	}{{"lost", "v1;5;billing;a", errors.New("lease lost")}, {"held again", "v1;7;billing;a", nil}} {
		text, lost = "v1;5;billing;a", nil
		stream, err := begin(t.Context(), conn)
		if err != nil {
			t.Fatal(err)
		}
		if err := line(stream, "R1"); err != nil {
			t.Fatal(err)
		}
		before := len(l.written())
		text, lost = c.text, c.lost
		if err := stream.SendMsg(nil); err == nil || c.lost != nil && !errors.Is(err, c.lost) {
			t.Errorf("%s: a message: %v", c.what, err)
		}
		if err := stream.RecvMsg(nil); status.Code(err) != codes.Canceled {
			t.Errorf("%s: the stream goes on: %v", c.what, err)
		}
		if c.lost != nil {
			_, err := begin(t.Context(), conn)
			if err := errors.Join(err, call(t.Context(), conn, "R2")); !errors.Is(err, c.lost) {
				t.Errorf("%s: %v", c.what, err)
			}
		}
		if n := len(l.written()) - before; n != 0 {
			t.Errorf("%s: %d lines were written", c.what, n)
		}
	}
}

// A stream that has ended leaves nothing behind in the context that it was begun with.
func TestEndedStream(t *testing.T) {
	l := &ledger{}
	var begun context.Context
	conn := dial(t, l.serve(t, offline(t), fencegrpc.Options{}), as("v1;5;billing;a"),
		grpc.WithChainStreamInterceptor(func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, stream grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			begun = ctx
			return stream(ctx, desc, cc, method, opts...)
		}))
	if err := streamed(t.Context(), conn, "R1"); err != nil || begun.Err() == nil {
		t.Errorf("%v; its context: %v", err, begun.Err())
	}
	single, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true}, write) // a call, seen as a stream
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(single.SendMsg(wrapperspb.String("R2")), single.CloseSend(), single.RecvMsg(&wrapperspb.StringValue{})); err != nil || begun.Err() == nil {
		t.Errorf("%v; its context: %v", err, begun.Err())
	}
}

// A sequencer that the caller's metadata have already, of a call that is passed on, is replaced.
func TestOneSequencer(t *testing.T) {
	l := &ledger{}
	conn := dial(t, l.serve(t, offline(t), fencegrpc.Options{}), as("v1;5;billing;a"))
	if err := call(metadata.AppendToOutgoingContext(t.Context(), fence.MetadataKey, "v1;4;other;b"), conn, "R"); err != nil {
		t.Error(err)
	}
}
