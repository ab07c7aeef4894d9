package kinds

import (
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// The record beside a name has a key that stores take. A name too long for one has no such record.
func TestBesideIsAKey(t *testing.T) {
	for _, kind := range []store.Kind{"", store.KindElection} {
		for n := store.MaxKey - 15; n <= store.MaxKey; n++ {
			rec := store.Record{Key: strings.Repeat("x", n), Kind: kind}
			prefix := Locks
			if kind == store.KindElection {
				prefix = Elections
			}
			want := prefix + rec.Key
			if driver.CheckKey(want) != nil {
				want = ""
			}
			if got := Beside(rec, store.KindSemaphore); got != want {
				t.Errorf("%q, a name of %d bytes: %.20q…, want %.20q…", kind, n, got, want)
			}
		}
	}
}
