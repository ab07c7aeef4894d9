package identity

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// A pool that is used up is widened: what is held stays held, under its number, and the next claim gets a new value.
func TestFinding_I5_AWidenedPoolHasMore(t *testing.T) {
	for _, c := range []struct {
		before, after Values
		values        []string // that there are then
	}{
		{Values{Range: "5-7"}, Values{Range: "5-9"}, []string{"5", "6", "7", "8", "9"}},
		{Values{Range: "5-7"}, Values{Range: "3-7"}, []string{"3", "4", "5", "6", "7"}},
		{Values{Names: []string{"b", "a"}}, Values{Names: []string{"a", "b", "c"}}, []string{"a", "b", "c"}},
		{Values{Prefix: "10.0.0.0/15", Bits: 16}, Values{Prefix: "10.0.0.0/14", Bits: 16}, []string{"10.0.0.0/16", "10.1.0.0/16", "10.2.0.0/16", "10.3.0.0/16"}},
	} {
		inWorld(t, func(t *testing.T, w world) {
			p := w.process(nil)
			set, err := c.before.check()
			if err != nil {
				t.Fatal(err)
			}
			numbers := map[string]uint64{}
			holds := make([]*Hold, set.size)
			for i := range holds {
				holds[i] = p.claim(Options{Values: c.before})
				numbers[holds[i].Value()] = holds[i].Number()
			}
			p.release(holds[0], holds[0].Floor()) // it is in the index, which has to follow
			got, err := Widen(t.Context(), p.Net, "machines", c.after)
			if err != nil || got.Size != len(c.values) {
				t.Fatalf("%+v, %v", got, err)
			}
			p.release(holds[1], holds[1].Floor()) // claimed when places were others
			_, index, wide, err := declared(t.Context(), p.Net, "machines", Values{})
			if err != nil {
				t.Fatal(err)
			}
			var free []string
			for _, i := range index.Free {
				free = append(free, wide.value(i))
			}
			if want := []string{holds[0].Value(), holds[1].Value()}; !slices.Equal(free, want[:len(free)]) || len(free) < min(2, set.size) {
				t.Errorf("free are %v, want %v", free, want)
			}
			for i := range wide.size {
				if _, had := set.place(wide.value(i)); !had && !index.isNew(i) {
					t.Errorf("%s is not new", wide.value(i))
				}
			}
			for range len(c.values) - set.size + 2 {
				h := p.claim(Options{Values: c.after})
				if n, had := numbers[h.Value()]; had && n != h.Number() {
					t.Errorf("%s had the number %d, and has %d", h.Value(), n, h.Number())
				}
				for value, n := range numbers {
					if value != h.Value() && n == h.Number() {
						t.Errorf("%s and %s both have the number %d", value, h.Value(), n)
					}
				}
				numbers[h.Value()] = h.Number()
			}
			_, entries, err := List(t.Context(), p.Net, "machines")
			var has []string
			for _, e := range entries {
				has = append(has, e.Value)
			}
			if slices.Sort(has); err != nil || !slices.Equal(has, c.values) {
				t.Errorf("values that are held: %v, %v; want %v", has, err, c.values)
			}
		})
	}
}

// A pool is widened only: what would take a value away, or give it another number, names both.
func TestFinding_I5_WhatIsNoSuperset(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p := w.process(nil)
		for i, c := range []struct {
			before, after Values
			why           string
		}{
			{Values{Range: "5-7"}, Values{Range: "5-6"}, "lack"},
			{Values{Range: "5-7"}, Values{Range: "6-9"}, "lack"},
			{Values{Range: "5-7"}, Values{Names: []string{"5", "6", "7", "9"}}, "don't become one another"},
			{Values{Names: []string{"a", "b"}}, Values{Names: []string{"a", "c"}}, "lack"},
			{Values{Prefix: "10.0.0.0/16", Bits: 24}, Values{Prefix: "10.0.0.0/15", Bits: 25}, "bits have to stay 24"},
			{Values{Prefix: "10.1.0.0/16", Bits: 24}, Values{Prefix: "10.0.0.0/15", Bits: 24}, "has to begin at 10.1.0.0"},
			{Values{Prefix: "10.0.0.0/16", Bits: 24}, Values{Prefix: "10.0.0.0/17", Bits: 24}, "lack"},
		} {
			pool := fmt.Sprint("pool", i)
			if _, err := Assign(t.Context(), p.m, pool, AssignOptions{Options: Options{Values: c.before, Name: "a"}}); err != nil {
				t.Fatal(err)
			}
			_, err := Widen(t.Context(), p.Net, pool, c.after)
			var narrow *NarrowError
			if !errors.As(err, &narrow) || !errors.Is(err, ErrMismatch) || !strings.Contains(err.Error(), c.why) ||
				!strings.Contains(err.Error(), c.before.String()) || !strings.Contains(err.Error(), c.after.String()) {
				t.Errorf("%v to %v: %v; want %q", c.before, c.after, err, c.why)
			}
			if got, err := Widen(t.Context(), p.Net, pool, c.before); err != nil || got.Size == 0 {
				t.Errorf("the same: %+v, %v", got, err)
			}
		}
		if _, err := Widen(t.Context(), p.Net, "none", Values{Range: "1-2"}); !errors.Is(err, ErrUndeclared) {
			t.Errorf("a pool that isn't there: %v", err)
		}
		if _, err := Widen(t.Context(), p.Net, "none", Values{}); err == nil {
			t.Error("no values are fine")
		}
	})
}

// A pool that is widened while a claim looks at all of its values: the claim's index, which is of other places, isn't stored.
func TestFinding_I5_ALookDoesNotStoreItsIndexInAWiderPool(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p := w.process(nil)
		h := p.claim(ranged("5-6"))
		c := newClaim(p.m, p.m, "machines", Options{})
		if err := c.load(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := Widen(t.Context(), p.Net, "machines", Values{Range: "1-60"}); err != nil {
			t.Fatal(err)
		}
		if err := c.publish(t.Context(), pool{New: make([]byte, 1)}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := List(t.Context(), p.Net, "machines"); err != nil {
			t.Error(err)
		}
		for range 20 {
			p.claim(Options{})
		}
		p.release(h, h.Floor())
	})
}

// Machines that are gone give their values back; one that lives, one that is new, and what a process keeps stay.
func TestFinding_I5_PruneFreesWhatIsGone(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p := w.process(nil)
		assign := func(as string) Assignment {
			a, err := Assign(t.Context(), p.m, "machines", AssignOptions{Options: Options{Values: Values{Range: "1-9"}, Name: as}})
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		gone, lives := assign("gone"), assign("lives")
		assign("")
		runs := p.claim(named1("1-9", "runs"))
		time.Sleep(2 * time.Hour)
		assign("back") // and not in the list yet
		o := PruneOptions{Live: func(name string) bool { return name == "lives" }, Idle: time.Hour, DryRun: true, Clock: p.Clk}
		for _, dry := range []bool{true, false, false} {
			o.DryRun = dry
			ended, err := Prune(t.Context(), p.Net, "machines", o)
			if err != nil {
				t.Fatal(err)
			}
			again := gone.Value == "" // the second time nothing is left
			if again != (len(ended) == 0) || !again && (len(ended) != 1 || ended[0].Name != "gone" || ended[0].Value != gone.Value) {
				t.Errorf("dry %t: %+v", dry, ended)
			}
			if !dry {
				gone.Value = ""
			}
		}
		_, entries, err := List(t.Context(), p.Net, "machines")
		if err != nil || len(entries) != 4 {
			t.Errorf("%d are left, %v", len(entries), err)
		}
		if again := assign("lives"); again.Value != lives.Value || !again.Renewed {
			t.Errorf("it had %s, and has %s", lives.Value, again.Value)
		}
		if err := runs.Check(); err != nil {
			t.Error(err)
		}
		if _, err := Prune(t.Context(), p.Net, "none", o); !errors.Is(err, ErrUndeclared) {
			t.Error(err)
		}
		if _, err := Prune(t.Context(), p.Net, "machines", PruneOptions{}); err == nil {
			t.Error("no list is fine")
		}
	})
}
