package election_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/election"
	"github.com/leasehold/leasehold/store"
)

// A leader whose record an outsider deletes, as kubectl delete lease does, or gives to another, stops within TTL/3. It stands again.
func TestFinding_S16_ALeaderWhoseRecordIsTakenStops(t *testing.T) {
	for name, c := range map[string]struct {
		outsider func(t *testing.T, w *world, rec store.Record) error
		want     string
	}{
		"deleted": {func(t *testing.T, w *world, rec store.Record) error {
			return w.st.Delete(t.Context(), rec.Key, rec.Version)
		}, "a stopped, a leads"},
		"given to another": {func(t *testing.T, w *world, rec store.Record) error {
			rec.Owner, rec.Token, rec.Session, rec.Nonce = "somebody", rec.Token+1, "", "outsider"
			_, err := w.st.Put(t.Context(), rec)
			return err
		}, "a stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				a := w.candidate("a", election.Options{})
				time.Sleep(time.Minute)
				w.expect("a leads")
				rec, err := w.st.Get(t.Context(), "job")
				if err == nil {
					err = c.outsider(t, w, rec)
				}
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(ttl / 3)
				w.expect(c.want)
				if c.want == "a stopped" && !strings.HasSuffix(a.traced(), "stopped") {
					t.Errorf("the term ended by %s", a.traced())
				}
			})
		})
	}
}
