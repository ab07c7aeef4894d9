package dynamotables

import (
	"errors"
	"testing"

	"github.com/leasehold/leasehold/store"
)

// nth has f called once, before the nth request of a kind that passes the gate.
func (g *gate) nth(n int, what string, f func()) {
	g.set(func(op string, companion bool) error {
		if companion {
			op += " companion"
		}
		if op == what {
			if n--; n == 0 {
				f()
			}
		}
		return nil
	})
}

// Row and companion are two reads. A record that is made, or taken and deleted by a neighbour, between the two doesn't show as
// something that it never was.
func TestReadsAreNotTorn(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		s, g := w.gated(t)
		var made store.Record
		g.nth(1, "GetItem companion", func() { made = mustPut(t, w, ours("job", 5, "")) })
		if got := mustGet(t, s, "job"); got.Version != made.Version || got.Owner != "me" {
			t.Errorf("made between the reads: %+v", got)
		}
		w.wipe(t, "job")
		for n := 1; n <= 2; n++ { // before the first look at the companion, and before the second
			free := mustGet(t, w, "job")
			g.nth(n, "GetItem companion", func() {
				made = mustPut(t, w, ours("job", free.Token+1, free.Version))
				w.wipe(t, "job")
			})
			if got := mustGet(t, s, "job"); got.Token != made.Token || got.Owner != "" || got.Version == free.Version {
				t.Errorf("taken and deleted before look %d: %+v, the last token was %d", n, got, made.Token)
			}
		}
	})
}

// Who has read a row just before it is deleted doesn't make its companion again: the key is gone, for all.
func TestFinding_O1_AReadBringsNothingBack(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		rec := mustPut(t, w, ours("job", 50, ""))
		s, g := w.gated(t)
		g.nth(1, "GetItem companion", func() {
			if err := w.Delete(t.Context(), "job", rec.Version); err != nil {
				t.Error(err)
			}
		})
		if got, err := s.Get(t.Context(), "job"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("who had read the row: %+v, %v", got, err)
		}
		if got, err := w.Get(t.Context(), "job"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("who reads later: %+v, %v", got, err)
		}
		if n := w.rows(t); n != 0 {
			t.Errorf("%d rows are left", n)
		}
	})
}

// A deletion that is overtaken by a new record leaves that one's companion alone.
func TestDeletionOvertaken(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		rec := mustPut(t, w, ours("job", 50, ""))
		s, g := w.gated(t)
		g.nth(1, "DeleteItem companion", func() { mustPut(t, w, ours("job", 60, "")) })
		if err := s.Delete(t.Context(), "job", rec.Version); err != nil {
			t.Fatal(err)
		}
		w.wipe(t, "job")
		if got := mustGet(t, w, "job"); got.Token != 60 {
			t.Errorf("%+v, want token 60", got)
		}
		// One that finds the record renewed in the middle is refused, and the companion counts again.
		rec = mustGet(t, w, "job")
		rec = mustPut(t, w, ours("job", 70, rec.Version))
		g.nth(1, "DeleteItem", func() { mustPut(t, w, rec) })
		mustConflict(t, s.Delete(t.Context(), "job", rec.Version))
		w.wipe(t, "job")
		if got := mustGet(t, w, "job"); got.Token != 70 {
			t.Errorf("%+v, want token 70", got)
		}
	})
}
