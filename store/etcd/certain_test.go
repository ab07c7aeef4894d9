package etcd

import (
	"context"
	"errors"
	"net"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold/store"
)

// An error is certain only if a server refused every attempt, or none was sent; all else may have been applied.
func TestWhichErrorsAreCertain(t *testing.T) {
	certain := map[error]bool{
		rpctypes.ErrTooManyRequests:                     true,
		rpctypes.ErrGRPCRequestTooManyRequests:          true,
		rpctypes.ErrPermissionDenied:                    true,
		rpctypes.ErrGRPCPermissionDenied:                true,
		status.Error(codes.InvalidArgument, ""):         true,
		status.Error(codes.Unauthenticated, ""):         true,
		status.Error(codes.FailedPrecondition, ""):      true,
		status.Error(codes.Unimplemented, ""):           true,
		status.Error(codes.Unavailable, ""):             false,
		status.Error(codes.DeadlineExceeded, ""):        false,
		status.Error(codes.ResourceExhausted, "memory"): false,
		status.Error(codes.Canceled, ""):                false,
		rpctypes.ErrNoSpace:                             false,
		rpctypes.ErrTimeout:                             false,
		rpctypes.ErrLeaderChanged:                       false,
		errors.New("the connection broke"):              false,
	}
	sent := peer.Peer{Addr: &net.TCPAddr{}}
	for err, want := range certain {
		if refused(err) != want {
			t.Errorf("%v: certain %v", err, !want)
		}
		for _, errs := range [][]error{{err}, {err, err}, {status.Error(codes.Unauthenticated, ""), err}, {err, status.Error(codes.Unauthenticated, "")}} {
			a := &attempts{errs: errs, peer: sent}
			last := errs[len(errs)-1]
			if out := a.failed(t.Context(), "n", errDownstream); errors.Is(out, store.ErrUnknownOutcome) == want || !errors.Is(out, last) {
				t.Errorf("%v: %v", errs, out)
			}
			if a.refused() != want {
				t.Errorf("%v: all refused: %v", errs, !want)
			}
		}
		answered := &attempts{errs: []error{err, nil}, peer: sent}
		if answered.certain() != want || answered.refused() {
			t.Errorf("%v, then an answer: certain %v, refused %v", err, !want, answered.refused())
		}
		if (&attempts{errs: []error{nil, err}, peer: sent}).certain() {
			t.Errorf("an answer that the client didn't take, then %v: certain", err)
		}
		unsent := &attempts{errs: []error{err}}
		if out := unsent.failed(t.Context(), "n", err); errors.Is(out, store.ErrUnknownOutcome) || !errors.Is(out, err) {
			t.Errorf("%v, with no connection: %v", err, out)
		}
	}
	none := &attempts{}
	if none.refused() || refused(nil) {
		t.Error("refused, though no server was asked")
	}
	if out := none.failed(t.Context(), "n", errDownstream); !errors.Is(out, errDownstream) {
		t.Errorf("no attempt: %v", out)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errDownstream)
	if out := (&attempts{errs: []error{context.Canceled}, peer: sent}).failed(ctx, "n", context.Canceled); !errors.Is(out, errDownstream) || !errors.Is(out, store.ErrUnknownOutcome) {
		t.Errorf("given up: %v", out)
	}
}

var errDownstream = errors.New("the client's own words")
