package identity

import (
	"errors"
	"testing"
	"time"

	"github.com/leasehold/leasehold/lease"
)

// A machine whose clock is a day ahead has made all values of a pool useless for a day: reset, they can be used at once, one that
// somebody has excepted. Who had one before extends its window no more.
func TestFinding_I4_ResetValuesCanBeUsed(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p, holds := w.ahead(3, ranged("0-2"))
		for _, h := range holds[:2] {
			p.release(h, p.Clk.Wall())
		}
		q := w.process(nil)
		q.late(2)
		late, err := LateValues(t.Context(), q.Net, "machines", q.Clk.Wall().Add(time.Minute))
		if err != nil || len(late) != 3 {
			t.Fatalf("%+v: %v", late, err)
		}
		for _, v := range late {
			var held *lease.HeldError
			err := Reset(t.Context(), q.m, "machines", v)
			if v.Value == holds[2].Value() {
				if !errors.As(err, &held) || v.Record.Owner != held.Holder {
					t.Errorf("%s, which is held: %v", v.Value, err)
				}
				continue
			}
			if err != nil || v.Record.Owner != "" {
				t.Errorf("%+v: %v", v, err)
			}
			if err := raise(t.Context(), q.Net, windowKey("machines", v.Value), v.Token, v.Begins.Add(time.Hour)); !errors.Is(err, ErrWindow) {
				t.Errorf("who had %s before raises its ceiling: %v", v.Value, err)
			}
			if err := Reset(t.Context(), q.m, "machines", v); !errors.Is(err, ErrWindow) {
				t.Errorf("%s, again: %v", v.Value, err)
			}
		}
		for range 2 {
			if _, err := q.ids(q.claim(Options{})).Next(); err != nil {
				t.Error(err)
			}
		}
		if late, err := LateValues(t.Context(), q.Net, "machines", q.Clk.Wall().Add(time.Minute)); err != nil || len(late) != 1 {
			t.Errorf("%+v: %v", late, err)
		}
	})
}

// A value that somebody has had since it was looked at isn't reset, nor one whose window has grown.
func TestResetOfAValueThatHasChanged(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p, holds := w.ahead(1, named1("5-5", "a"))
		p.release(holds[0], p.Clk.Wall())
		q := w.process(nil)
		late, err := LateValues(t.Context(), q.Net, "machines", q.Clk.Wall())
		if err != nil || len(late) != 1 || late[0].Name != "a" || late[0].Value != "5" {
			t.Fatalf("%+v: %v", late, err)
		}
		longer := late[0]
		longer.Begins = longer.Begins.Add(-time.Second)
		if err := Reset(t.Context(), q.m, "machines", longer); !errors.Is(err, ErrWindow) {
			t.Errorf("a window that has grown: %v", err)
		}
		h := p.claim(named1("5-5", "a"))
		p.release(h, h.Floor())
		if err := Reset(t.Context(), q.m, "machines", late[0]); !errors.Is(err, ErrWindow) {
			t.Errorf("a value that was held since: %v", err)
		}
		if err := Reset(t.Context(), q.m, "machines", Late{Value: "6"}); !errors.As(err, new(*OutsideError)) {
			t.Error(err)
		}
	})
}
