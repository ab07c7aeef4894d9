package nats

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	natsgo "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/leasehold/leasehold/store"
)

// An error is certain only if the servers say that nothing was stored; all else may have been.
func TestWhichErrorsAreCertain(t *testing.T) {
	api := func(code jetstream.ErrorCode) error { return &jetstream.APIError{Code: 400, ErrorCode: code} }
	for _, c := range []struct {
		err               error
		certain, mismatch bool
	}{
		{natsgo.ErrNoResponders, true, false},
		{jetstream.ErrNoStreamResponse, true, false},
		{natsgo.ErrMaxPayload, true, false},
		{natsgo.ErrReconnectBufExceeded, true, false},
		{api(jetstream.JSErrCodeStreamMessageExceedsMaximum), true, false},
		{api(jetstream.JSErrCodeStreamNotFound), true, false},
		{api(jetstream.JSErrCodeJetStreamNotEnabled), true, false},
		{api(jetstream.JSErrCodeJetStreamNotEnabledForAccount), true, false},
		{api(10002), true, false},
		{api(10023), true, false},
		{api(10109), true, false},
		{api(10077), false, false}, // the store failed
		{api(10071), false, true},
		{api(10164), false, true},
		{natsgo.ErrTimeout, false, false},
		{natsgo.ErrConnectionClosed, false, false},
		{io.ErrUnexpectedEOF, false, false},
		{context.DeadlineExceeded, false, false},
	} {
		for _, err := range []error{c.err, fmt.Errorf("wrapped: %w", c.err)} {
			out := outcome("n", err)
			if unknown := errors.Is(out, store.ErrUnknownOutcome); unknown == c.certain || !errors.Is(out, c.err) {
				t.Errorf("%v: %v", err, out)
			}
			if mismatch(err) != c.mismatch {
				t.Errorf("%v: says that the key has another version: %v", err, !c.mismatch)
			}
		}
	}
	if err := outcome("n", nil); err != nil {
		t.Errorf("no error: %v", err)
	}
}
