package dynamotables

import (
	"strings"
	"sync"
	"testing"

	"github.com/leasehold/leasehold/store/driver"
)

// deleteDenied is a client of an identity that has what standby needs, and no DeleteItem.
func deleteDenied(t *testing.T, w *world) *Store {
	t.Helper()
	g := &gate{Client: w.client, key: w.kind.key}
	g.set(func(op string, _ bool) error {
		if op == "DeleteItem" {
			return errCrash // AccessDeniedException
		}
		return nil
	})
	s, err := w.kind.open(g, w.name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Who may not delete can have the table looked at all the same, and leaves one row however often that is done.
func TestFinding_D4_InspectWithoutDeleteItem(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		s := deleteDenied(t, w)
		rows := 0
		for i := range 4 {
			for _, f := range s.Inspect(t.Context()) {
				if f.What == "time to live" { // off here, where one neighbour wants it
					continue
				}
				if f.Status != driver.StatusOK {
					t.Errorf("%+v", f)
				}
				if f.What == "permissions" && !strings.Contains(f.Detail, "DeleteItem isn't allowed") {
					t.Errorf("%+v", f)
				}
			}
			if i == 0 {
				rows = w.rows(t)
			}
		}
		if got := w.rows(t); got != rows || rows > 2 {
			t.Errorf("%d rows are left after the first look, %d after the last, want as many and at most 2: the row and its companion", rows, got)
		}
		rec := mustGet(t, w, probePrefix+"probe")
		if rec.Owner != "" {
			t.Errorf("%+v", rec)
		}
		for _, f := range w.Inspect(t.Context()) { // by who may: nothing is left
			if f.Status == driver.StatusFail {
				t.Errorf("%+v", f)
			}
		}
		if got := w.rows(t); got != 0 {
			t.Errorf("%d rows are left", got)
		}
	})
}

func TestFinding_D4_TwoWhoLook(t *testing.T) {
	w := newWorld(t, kindOf(t, "admiral"))
	var all sync.WaitGroup
	for range 4 {
		s := w.open(t)
		all.Go(func() {
			for range 3 {
				for _, f := range s.Inspect(t.Context()) {
					if f.Status != driver.StatusOK {
						t.Errorf("%+v", f)
					}
				}
			}
		})
	}
	all.Wait()
}
