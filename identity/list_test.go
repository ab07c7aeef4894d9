package identity

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/leasehold/leasehold/lease"
)

// What can't be adopted as a whole isn't at all; what can is, once.
func TestImport(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p := w.process(nil)
		old, had := as("1-20", "old"), "17"
		old.Value = had
		p.assign(old)
		o := AssignOptions{}
		data := map[string]string{"a": "0", "b": "21", "c": "3", "d": "3", "e": had, "old": had, "f": ""}
		var refused *ImportError
		if _, err := Import(t.Context(), p.m, "machines", data, o); !errors.As(err, &refused) || len(refused.Duplicates) == 0 || len(refused.Conflicts) != 3 {
			t.Fatalf("%v", err)
		}
		if _, all, err := List(t.Context(), p.Net, "machines"); err != nil || len(all) != 1 {
			t.Errorf("it has written something: %+v, %v", all, err)
		}
		data = map[string]string{"old": had, "none": ""}
		for i := 1; i <= 20; i++ {
			if v := fmt.Sprint(i); v != had {
				data["n"+v] = v
			}
		}
		for _, want := range []int{19, 0} {
			made, err := Import(t.Context(), p.m, "machines", data, o)
			if err != nil || len(made) != want {
				t.Errorf("%d are new, want %d: %v", len(made), want, err)
			}
		}
		pool, all, err := List(t.Context(), p.Net, "machines")
		if err != nil || len(all) != 20 || pool.Pool != "machines" || pool.Values.Range != "1-20" || pool.Size != 20 || pool.Layout != "" {
			t.Fatalf("%+v, %d of 20, %v", pool, len(all), err)
		}
		for i, e := range all {
			if e.Value != fmt.Sprint(i+1) || data[e.Name] != e.Value || !e.Assigned || e.Ceiling.IsZero() {
				t.Errorf("%+v", e)
			}
		}
		if again := p.assign(as("", all[6].Name)); again.Value != "7" || !again.Renewed {
			t.Errorf("%+v", again)
		}
		if twice, err := Duplicates(t.Context(), p.Net, "machines"); err != nil || len(twice) > 0 {
			t.Errorf("%v, %v", twice, err)
		}
	})
}

func TestPools(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p := w.process(nil)
		for _, pool := range []string{"red/blue", "machines"} {
			if _, err := Assign(t.Context(), p.m, pool, as("0-6", "a/b")); err != nil {
				t.Fatal(err)
			}
		}
		all, err := Pools(t.Context(), p.Net)
		want := []Declared{{"machines", Values{Range: "0-6"}, 7, ""}, {"red/blue", Values{Range: "0-6"}, 7, ""}}
		if err != nil || !reflect.DeepEqual(all, want) {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

// A claim that isn't to wait fails at once while its name holds a value elsewhere, and not later.
func TestNoWait(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p := w.process(nil)
		h := p.claim(named1("1-3", "a"))
		o := named1("1-3", "a")
		o.NoWait = true
		q, start := w.process(nil), time.Now()
		if _, err := Claim(t.Context(), q.s, "machines", o); !errors.Is(err, lease.ErrHeld) || time.Since(start) > 0 {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		p.release(h, time.Time{})
		if again, err := Claim(t.Context(), q.s, "machines", o); err != nil || again.Value() != h.Value() {
			t.Errorf("after its release: %v", err)
		}
	})
}

func TestValuesCheck(t *testing.T) {
	for _, v := range []Values{{}, {Range: "1-2"}, {Names: []string{"a"}}, {Prefix: "10.0.0.0/8", Bits: 16}} {
		if err := v.Check(); err != nil {
			t.Errorf("%+v: %v", v, err)
		}
	}
	for _, v := range []Values{{Range: "2-1"}, {Range: "1-2", Names: []string{"a"}}, {Bits: 3}} {
		if err := v.Check(); err == nil {
			t.Errorf("%+v is fine", v)
		}
	}
}
