package faulty_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leasehold/leasehold/clock/clocktest"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/faulty"
	"github.com/leasehold/leasehold/store/memory"
)

// No answer of an ageless store has an age, whichever way it comes.
func TestAgeless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := memory.NewDB(memory.Options{Clock: clocktest.New(0)})
		plain, ageless := db.Open(), faulty.Ageless(db.Open())
		if _, err := plain.Put(t.Context(), record("k")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		for _, st := range []store.Store{plain, ageless} {
			ages := map[string]time.Duration{}
			rec, err := st.Get(t.Context(), "k")
			ages["Get"] = rec.Age
			waited, waitErr := store.Wait(t.Context(), st, "k", "")
			ages["Wait"] = waited.Age
			var conflict *store.ConflictError
			if _, err := st.Put(t.Context(), record("k")); errors.As(err, &conflict) {
				ages["Put"] = conflict.Current.Age
			}
			for rec, err := range st.List(t.Context(), "") {
				if err != nil {
					t.Error(err)
				}
				ages["List"] = rec.Age
			}
			if err != nil || waitErr != nil || len(ages) != 4 {
				t.Fatal(err, waitErr, ages)
			}
			for what, age := range ages {
				if (age == 0) != (st == ageless) {
					t.Errorf("%T: an age of %v from %s", st, age, what)
				}
			}
		}
	})
}
