package fencegrpc

import (
	"errors"
	"strconv"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/leasehold/leasehold/fence"
)

// How a refusal is told.
const (
	domain          = "leasehold"
	reasonStale     = "STALE_TOKEN"
	reasonMissing   = "SEQUENCER_MISSING"
	reasonMalformed = "SEQUENCER_INVALID"
	reasonForged    = "SEQUENCER_FORGED"
	reasonOtherName = "SEQUENCER_OTHER_NAME"
	reasonUnknown   = "GUARD_UNAVAILABLE"
)

var errMissing = errors.New("the call has no " + fence.MetadataKey + " in its metadata: only holders of the lease may make it")

// refusal returns the status that tells why a call is refused.
func refusal(err error) error {
	code, info := codes.Unavailable, &errdetails.ErrorInfo{Domain: domain, Reason: reasonUnknown}
	var stale *fence.StaleError
	switch {
	case errors.As(err, &stale):
		code, info.Reason = codes.FailedPrecondition, reasonStale
		info.Metadata = map[string]string{
			"name": stale.Name, "got": stale.Got.String(), "current": stale.Current.String(), "holder": stale.Holder,
		}
	case errors.Is(err, errMissing):
		code, info.Reason = codes.FailedPrecondition, reasonMissing
	case errors.Is(err, fence.ErrForged):
		code, info.Reason = codes.PermissionDenied, reasonForged
	case errors.Is(err, fence.ErrOtherName):
		code, info.Reason = codes.PermissionDenied, reasonOtherName
	case errors.Is(err, fence.ErrMalformed):
		code, info.Reason = codes.InvalidArgument, reasonMalformed
	}
	plain := status.New(code, err.Error())
	detailed, err := plain.WithDetails(info)
	if err != nil { // a holder that isn't UTF-8
		return plain.Err()
	}
	return detailed.Err()
}

// told returns err with the *fence.StaleError that its status tells of, or err as it is.
func told(err error) error {
	if err == nil {
		return nil
	}
	st, ok := status.FromError(err)
	if !ok || st.Code() != codes.FailedPrecondition {
		return err
	}
	for _, detail := range st.Details() {
		info, ok := detail.(*errdetails.ErrorInfo)
		if !ok || info.GetDomain() != domain || info.GetReason() != reasonStale {
			continue
		}
		m := info.GetMetadata()
		got, err1 := strconv.ParseUint(m["got"], 10, 64)
		current, err2 := strconv.ParseUint(m["current"], 10, 64)
		if errors.Join(err1, err2) == nil {
			stale := &fence.StaleError{Name: m["name"], Got: fence.Token(got), Current: fence.Token(current), Holder: m["holder"]}
			return &refused{stale, st}
		}
	}
	return err
}

// refused is a refusal as the client sees it.
type refused struct {
	*fence.StaleError
	status *status.Status
}

// Unwrap returns the *fence.StaleError.
func (r *refused) Unwrap() error { return r.StaleError }

// GRPCStatus is what package status asks an error for.
func (r *refused) GRPCStatus() *status.Status { return r.status }
