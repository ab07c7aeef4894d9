package lease_test

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/faulty"
)

// Who waits for a store that refuses is told why, once for each reason.
func TestAcquireTellsWhyItTriesAgain(t *testing.T) {
	full, away := errors.New("the disk is full"), errors.New("connection refused")
	inWorld(t, func(t *testing.T, w *world) {
		var told []error
		n := w.Node(lease.Options{OnRetry: func(key string, err error) {
			if key != "job" {
				t.Errorf("told of %q", key)
			}
			told = append(told, err)
		}})
		refusing := func(reason error) {
			n.Plan(func(op faulty.Op) faulty.Fault {
				if op.Kind == faulty.Put {
					return faulty.Fault{Err: reason}
				}
				return faulty.Fault{}
			})
		}
		refusing(full)
		wait := n.Acquiring(t.Context(), "job")
		time.Sleep(time.Minute)
		refusing(away)
		time.Sleep(time.Minute)
		n.Plan(nil)
		wait.Wait(t, time.Now(), ttl/20*3/2) // the longest pause between two tries
		if len(told) != 2 || !errors.Is(told[0], full) || !errors.Is(told[1], away) {
			t.Errorf("told of %v", told)
		}
	})
}
