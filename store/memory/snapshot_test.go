package memory_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/memory"
	"github.com/leasehold/leasehold/store/storetest"
)

// A snapshot has the versions that were stored, and what comes after a Restore has others than what it took away.
func TestRestore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memory.NewDB(memory.Options{})
		s := db.Open()
		first := storetest.MustPut(t, s, store.Record{Key: "k", Owner: "a", Token: 1, TTL: time.Second, Nonce: "n1"})
		before := db.Snapshot()
		change := first
		change.Nonce = "n2"
		gone := storetest.MustPut(t, s, change)
		storetest.MustPut(t, s, store.Record{Key: "new", TTL: time.Second, Nonce: "n3"})
		waiting := storetest.StartWait(t, s, gone)
		synctest.Wait()
		db.Restore(before)
		waiting.End(t)
		if got, err := s.Get(t.Context(), "k"); err != nil || got.Version != first.Version || got.Nonce != "n1" {
			t.Errorf("after Restore: %+v, %v", got, err)
		}
		if got, err := s.Get(t.Context(), "new"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("made after the snapshot: %+v, %v", got, err)
		}
		if again := storetest.MustPut(t, s, change); again.Version == gone.Version {
			t.Errorf("version %q was given twice", again.Version)
		}
	})
}
