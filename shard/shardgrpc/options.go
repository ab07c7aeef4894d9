package shardgrpc

import (
	"context"
	"errors"
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/shard"
)

// KeyHeader is the metadata key that has the key of a call.
const KeyHeader = "leasehold-key"

// Options say where the key of a call is, and how long a caller waits. The zero value reads the
// metadata key leasehold-key, and waits 10 s.
type Options struct {
	// Key returns the key of a call; "" where there is none. The method is given in full:
	// /package.Service/Method. md is the metadata of the call. req is the request of a unary call,
	// and nil for a stream. Many goroutines may call Key at a time. A client sends the key in
	// leasehold-key, too, and a worker's Key may read it there.
	Key func(method string, md metadata.MD, req any) string

	// Wait is how long a client waits for a worker that owns the key, or serves it: 10 s by
	// default, or until the deadline of the call. Slices that move take milliseconds. Those of a
	// worker that has died take up to the TTL and a second. A negative Wait is none. Workers don't
	// use it.
	Wait time.Duration
}

// key returns the key of a call, "" if it has none or several.
func (o *Options) key(method string, md metadata.MD, req any) string {
	if o.Key != nil {
		return o.Key(method, md, req)
	}
	if all := md.Get(KeyHeader); len(all) == 1 {
		return all[0]
	}
	return ""
}

// How a refusal is told.
const (
	domain      = "leasehold"
	reasonOwner = "WRONG_OWNER"
	reasonKey   = "KEY_MISSING"
)

var errNoKey = explained(codes.InvalidArgument, "the call has no key, or several: set one in the metadata key "+KeyHeader, &errdetails.ErrorInfo{Domain: domain, Reason: reasonKey})

func explained(code codes.Code, text string, info *errdetails.ErrorInfo) error {
	plain := status.New(code, text)
	detailed, err := plain.WithDetails(info)
	if err != nil { // an address that isn't UTF-8
		return plain.Err()
	}
	return detailed.Err()
}

// Refuse returns the status for the error of a check that failed after the call was passed on:
// FAILED_PRECONDITION with the owner, as the interceptors return. Other errors it returns as they
// are.
func Refuse(err error) error {
	if !errors.Is(err, shard.ErrWrongOwner) {
		return err
	}
	info := &errdetails.ErrorInfo{Domain: domain, Reason: reasonOwner, Metadata: map[string]string{}}
	var wrong *shard.WrongOwner
	if errors.As(err, &wrong) && wrong.Now != "" {
		info.Metadata["owner"] = wrong.Now
		info.Metadata["token"] = wrong.Token.String()
	}
	return explained(codes.FailedPrecondition, err.Error(), info)
}

// WrongOwner returns what a worker has said that refused a call since it doesn't own the key; nil
// for any other error.
func WrongOwner(err error) *shard.WrongOwner {
	st, ok := status.FromError(err)
	if err == nil || !ok || st.Code() != codes.FailedPrecondition {
		return nil
	}
	for _, detail := range st.Details() {
		info, ok := detail.(*errdetails.ErrorInfo)
		if !ok || info.GetDomain() != domain || info.GetReason() != reasonOwner {
			continue
		}
		token, _ := strconv.ParseUint(info.GetMetadata()["token"], 10, 64) // 0 where it isn't known
		return &shard.WrongOwner{Now: info.GetMetadata()["owner"], Token: fence.Token(token)}
	}
	return nil
}

type sliceKey struct{}

// Slice returns the slice that the key of a call is in, from the context of a call that an
// interceptor has passed on; else nil. The program calls [shard.Slice.Check] on it right before it
// acts, and sends its Sequencer to what it writes to.
func Slice(ctx context.Context) *shard.Slice {
	s, _ := ctx.Value(sliceKey{}).(*shard.Slice)
	return s
}
