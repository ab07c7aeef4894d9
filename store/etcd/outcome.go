package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold/store"
)

// attempts is how often one request was sent, and how each time ended. The client repeats a write by itself when its token has
// expired, and when the answer is that the request was cancelled while the caller's context goes on. In the second case the
// first copy may have been applied; then the answer to the second is about a record that the first one made.
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

// certain reports whether what the last attempt brought, an answer or a refusal, is the whole truth: all attempts before it were
// refused. So is the failure of a write for which no attempt ever had a connection to be sent over.
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

// refused reports whether err says that a server did not, and will not, apply the write.
//
// A full database is not among them: the member that finds it full while it applies a write has applied it. Nor is anything
// that is Unavailable: a request that timed out, or lost its leader, can still be committed.
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
	return store.Unknown(key, err)
}

// because explains err, and puts the cause of ctx first if it has ended: that is why the call did.
func because(ctx context.Context, err error) error {
	err = explain(err)
	if ctx.Err() != nil {
		return fmt.Errorf("%w (%v)", context.Cause(ctx), err)
	}
	return err
}

// advice says what to do about an error, by what it says.
var advice = []struct{ says, do string }{
	{"permission denied", "the user lacks read and write permission on the prefix: etcdctl role grant-permission ROLE --prefix=true readwrite PREFIX"},
	{"user name is empty", "the server demands a user: give the client a user name and a password, or a certificate with a common name"},
	{"authentication failed", "the user name or the password is wrong"},
	{"invalid auth token", "the client's token has expired and it has no user name to get another with"},
	{"x509: certificate signed by unknown authority", "the server's certificate isn't from a CA that the client trusts: name the CA's file"},
	{"x509: ", "the server's certificate doesn't fit: check the name or address that it was issued for, and its dates"},
	{"certificate required", "the server demands a client certificate: name a certificate and its key"},
	{"bad certificate", "the server doesn't accept the client's certificate: is it from the CA that the server trusts?"},
	{"unknown certificate authority", "the server doesn't accept the client's certificate: is it from the CA that the server trusts?"},
	{"first record does not look like a TLS handshake", "the server speaks plain text: connect without TLS"},
	{"error reading server preface", "the server speaks TLS, or isn't etcd: connect with TLS, and check the port"},
	{"database space exceeded", "the database is full: compact and defragment it, then: etcdctl alarm disarm"},
	{"too many requests", "the server is overloaded"},
	{"request is too large", "the server takes only smaller requests: raise its --max-request-bytes to 1.5 MiB"},
	{"no leader", "the cluster has no leader: is a majority of the members up?"},
	{"request timed out", "the cluster was too slow, or has no majority: check its members and disks"},
	{"unknown service etcdserverpb", "what answers isn't an etcd server of version 3"},
	{"connection refused", "no server listens there: is etcd up, and are host and port right?"},
	{"no such host", "the host's name isn't known: is it right?"},
	{"connection error", "the server can't be reached: is etcd up, and are host and port right?"},
}

// explain adds to err what to do about it, where that is known.
func explain(err error) error {
	text := err.Error()
	for _, a := range advice {
		if strings.Contains(text, a.says) {
			return fmt.Errorf("%w: %s", err, a.do)
		}
	}
	return err
}
