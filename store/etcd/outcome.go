package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold/store/driver"
)

// attempts is how often one request was sent, and how each time ended. The client repeats a write
// by itself when its token has expired, and when the answer is that the request was cancelled while
// the caller's context goes on. In the second case the first copy may have been applied; then the
// answer to the second is about a record that the first one made.
type attempts struct {
	mu   sync.Mutex
	errs []error   // in order; nil for one that was answered
	peer peer.Peer // whom the last one that found a connection was sent to
}

type attemptsKey struct{}

// observed is a KV service that notes how each attempt ended, where the context asks for it.
type observed struct{ pb.KVClient }

func (o observed) Txn(ctx context.Context, in *pb.TxnRequest, opts ...grpc.CallOption) (*pb.TxnResponse, error) {
	return o.KVClient.Txn(ctx, in, noted(ctx, opts)...)
}

func (o observed) Range(ctx context.Context, in *pb.RangeRequest, opts ...grpc.CallOption) (*pb.RangeResponse, error) {
	return o.KVClient.Range(ctx, in, noted(ctx, opts)...)
}

func noted(ctx context.Context, opts []grpc.CallOption) []grpc.CallOption {
	if a, ok := ctx.Value(attemptsKey{}).(*attempts); ok {
		opts = append(opts[:len(opts):len(opts)], grpc.OnFinish(a.add), grpc.Peer(&a.peer))
	}
	return opts
}

func (a *attempts) add(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.errs = append(a.errs, err)
}

// certain reports whether what the last attempt brought, an answer or a refusal, is the whole
// truth: all attempts before it were refused. So is the failure of a write for which no attempt
// ever had a connection to be sent over.
func (a *attempts) certain() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.peer.Addr == nil {
		return true
	}
	for i, err := range a.errs {
		if answered := err == nil && i == len(a.errs)-1; !answered && !refused(err) {
			return false
		}
	}
	return true
}

// cause returns the last attempt's own error, which says more than the client's, or else that one.
func (a *attempts) cause(err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n := len(a.errs); n > 0 && a.errs[n-1] != nil {
		return a.errs[n-1]
	}
	return err
}

// refused reports whether a server refused the last attempt, and all before it.
func (a *attempts) refused() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, err := range a.errs {
		if !refused(err) {
			return false
		}
	}
	return len(a.errs) > 0
}

// refused reports whether err says that a server did not, and will not, apply the write.
//
// A full database is not among them: the member that finds it full while it applies a write has
// applied it. Nor is anything that is Unavailable: a request that timed out, or lost its leader,
// can still be committed.
func refused(err error) bool {
	if err == nil {
		return false
	}
	if errors.Is(rpctypes.Error(err), rpctypes.ErrTooManyRequests) {
		return true
	}
	switch code(err) {
	case codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated, codes.FailedPrecondition, codes.Unimplemented:
		return true
	}
	return false
}

// code returns the gRPC code of err, whether it went through the client's translation or not.
func code(err error) codes.Code {
	var e rpctypes.EtcdError
	if errors.As(err, &e) {
		return e.Code()
	}
	return status.Code(err)
}

// failed returns the error of a write that brought no answer.
func (a *attempts) failed(ctx context.Context, key string, err error) error {
	err = because(ctx, a.cause(err))
	if a.certain() {
		return fmt.Errorf("%s: not written: %w", key, err)
	}
	return driver.Unknown(key, err)
}

// because explains err, and puts the cause of ctx first if it has ended: that is why the call did.
func because(ctx context.Context, err error) error {
	err = Explain(err)
	if ctx.Err() != nil {
		return fmt.Errorf("%w (%v)", context.Cause(ctx), err)
	}
	return err
}
