package consul

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/leasehold/leasehold/store"
)

// An error is certain only if the server refused the request, knows of no leader, or was never reached; all else may have been done.
func TestWhichErrorsAreCertain(t *testing.T) {
	s := &Store{}
	for _, c := range []struct {
		err     error
		certain bool
	}{
		{api.StatusError{Code: 400}, true},
		{api.StatusError{Code: 403}, true},
		{api.StatusError{Code: 404}, true},
		{api.StatusError{Code: 413}, true},
		{api.StatusError{Code: 429}, true},
		{api.StatusError{Code: 500, Body: "No cluster leader"}, true},
		{api.StatusError{Code: 500, Body: "rpc error: No cluster leader"}, true},
		{api.StatusError{Code: 408}, false},
		{api.StatusError{Code: 499}, false},
		{api.StatusError{Code: 500, Body: "rpc error"}, false},
		{api.StatusError{Code: 502}, false},
		{api.StatusError{Code: 503}, false},
		{api.StatusError{Code: 504}, false},
		{api.StatusError{Code: 302}, false},
		{io.ErrUnexpectedEOF, false},
		{errors.New("No cluster leader"), false}, // nobody's answer
	} {
		for _, err := range []error{c.err, fmt.Errorf("wrapped: %w", c.err)} {
			if out := s.outcome(t.Context(), "n", true, err); errors.Is(out, store.ErrUnknownOutcome) == c.certain || !errors.Is(out, c.err) {
				t.Errorf("%v: %v", err, out)
			}
			if out := s.outcome(t.Context(), "n", false, err); errors.Is(out, store.ErrUnknownOutcome) || !errors.Is(out, c.err) {
				t.Errorf("%v of a request that was not sent: %v", err, out)
			}
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("given up")
	cancel(gone)
	if out := s.outcome(ctx, "n", true, context.Canceled); !errors.Is(out, gone) || !errors.Is(out, store.ErrUnknownOutcome) {
		t.Errorf("given up: %v", out)
	}
}
