package dynamotables

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/dynamodb/internal/table"
)

// A row that an operator wrote by hand, with two attributes or with a time that the console made a string, can be read and
// replaced, by the condition that it is still what was read.
func TestFinding_D2_RowsByHand(t *testing.T) {
	for name, row := range map[string]table.Row{
		"two attributes":        {"leaseOwner": str(HoldOwner)},
		"a time as a string":    {"leaseOwner": str(HoldOwner), "updatedTime": str("1700000000")},
		"no time":               {"leaseOwner": str(HoldOwner), "updatedTime": str("")},
		"a pod, and no time":    {"leaseOwner": str("pod-1")},
		"a pod, a string":       {"leaseOwner": str("pod-1"), "updatedTime": str("1700000000")},
		"the name, and no more": {},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, kindOf(t, "admiral"))
			w.plant(t, "job", row)
			rec := mustGet(t, w, "job")
			next := store.Record{Key: "job", Version: rec.Version, Owner: HoldOwner, Token: 9, TTL: time.Hour}
			w.plant(t, "job", with(row, "updatedTime", str("1700000001")))
			var conflict *store.ConflictError
			if _, err := w.Put(t.Context(), next); !errors.As(err, &conflict) {
				t.Fatalf("a write over what was changed meanwhile: %v", err)
			}
			next.Version = conflict.Current.Version
			mustPut(t, w, next)
			if got := mustGet(t, w, "job"); got.Owner != HoldOwner || got.Token != 9 {
				t.Errorf("%+v", got)
			}
			if kind := typeName(w.attrs(t, "job")["updatedTime"]); kind != "N" {
				t.Errorf("Admiral finds a time of type %s, want N", kind)
			}
			w.plant(t, "gone", row)
			if err := w.Delete(t.Context(), "gone", mustGet(t, w, "gone").Version); err != nil {
				t.Error(err)
			}
		})
	}
}
