package lease_test

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold/leasehold/lease"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

// What can't be read is no answer: a guard gets an error, and an operator's word about a lease of a session that can't be told leaves the
// lease as it is.
func TestUnreadRecordsAreNoAnswer(t *testing.T) {
	db := memory.NewDB(memory.Options{})
	m := newManager(t, db.Open())
	s, err := m.OpenSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	held, err := s.TryAcquire(t.Context(), "job")
	if err != nil {
		t.Fatal(err)
	}
	errRefused := errors.New("connection refused")
	plain := db.Open()
	for _, key := range []string{"job", s.Key()} {
		failing := faulty.Wrap(db.Open(), func(op faulty.Op) faulty.Fault {
			if op.Kind == faulty.Get && op.Key == key {
				return faulty.Fault{Err: errRefused}
			}
			return faulty.Fault{}
		})
		if c, err := lease.Source(failing).Current(t.Context(), "job"); !errors.Is(err, errRefused) {
			t.Errorf("%s can't be read: a guard learns %+v, %v", key, c, err)
		}
		before, err := plain.Get(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		e := lease.EndTerm{Token: held.Token(), By: "ada", Grace: time.Second}
		if _, err := newManager(t, failing).Free(t.Context(), "job", e); !errors.Is(err, errRefused) {
			t.Errorf("%s can't be read: freed: %v", key, err)
		}
		if _, err := newManager(t, failing).Break(t.Context(), "job", e); !errors.Is(err, errRefused) {
			t.Errorf("%s can't be read: broken: %v", key, err)
		}
		if after, err := plain.Get(t.Context(), "job"); err != nil || after.Version != before.Version {
			t.Errorf("%s can't be read: %+v, %v", key, after, err)
		}
		if err := failing.Close(); err != nil {
			t.Error(err)
		}
	}
}
