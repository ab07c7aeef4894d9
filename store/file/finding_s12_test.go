package file

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// A write that was taken from the queue when its caller's time ends has an unknown outcome: it is done a moment later.
func TestFinding_S12_AWriteThatIsTakenAndNotAnsweredIsUnknown(t *testing.T) {
	s := testOpen(t, testPath(t))
	other, err := dialWriter(s.path) // another program's transaction, which the write meets within its own
	if err != nil {
		t.Fatal(err)
	}
	defer other.close()
	if _, err := other.exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	why := errors.New("changed my mind")
	ctx, cancel := context.WithCancelCause(t.Context())
	taken := make(chan struct{})
	go func() {
		defer close(taken)
		for s.turn.TryLock() { // it is locked while a batch is written
			s.turn.Unlock()
			time.Sleep(time.Millisecond)
		}
		queued(t, s, &s.takings, 0)
		cancel(why)
	}()
	_, err = s.Put(ctx, held("k", 1))
	<-taken
	if _, rollback := other.exec("ROLLBACK"); rollback != nil {
		t.Fatal(rollback)
	}
	if !errors.Is(err, why) || !errors.Is(err, store.ErrUnknownOutcome) {
		t.Errorf("Put: %v, want an unknown outcome", err)
	}
	mustPut(t, s, held("other", 1)) // after it
	if _, err := s.Get(t.Context(), "k"); err != nil {
		t.Errorf("what was cut short was not done: %v", err)
	}
}
