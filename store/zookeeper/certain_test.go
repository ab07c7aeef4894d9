package zookeeper

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/leasehold/leasehold/store"
)

// An error is certain only if the server refused the request, or it was never sent; all else may have been done.
func TestWhichErrorsAreCertain(t *testing.T) {
	s := &Store{root: "/leasehold"}
	for _, c := range []struct {
		err     error
		certain bool
	}{
		{zk.ErrNoNode, true},
		{zk.ErrNodeExists, true},
		{zk.ErrBadVersion, true},
		{zk.ErrNotEmpty, true},
		{zk.ErrNoAuth, true},
		{zk.ErrInvalidACL, true},
		{zk.ErrBadArguments, true},
		{zk.ErrNoChildrenForEphemerals, true},
		{zk.ErrNoServer, true},
		{unsentError{io.EOF}, true},
		{zk.ErrConnectionClosed, false},
		{zk.ErrSessionExpired, false},
		{zk.ErrClosing, false},
		{io.ErrUnexpectedEOF, false},
	} {
		for _, err := range []error{c.err, fmt.Errorf("wrapped: %w", c.err)} {
			out := s.outcome("n", err)
			if out == nil || errors.Is(out, store.ErrUnknownOutcome) == c.certain {
				t.Errorf("%v: %v", err, out)
			}
			cause := c.err
			if unsent, ok := c.err.(unsentError); ok {
				cause = unsent.error
			}
			if got := s.readError("/n", err); !errors.Is(got, cause) {
				t.Errorf("%v of a read: %v", err, got)
			}
		}
	}
	if !answered(nil) || answered(zk.ErrConnectionClosed) {
		t.Error("an answer is one, and a broken connection is none")
	}
}
