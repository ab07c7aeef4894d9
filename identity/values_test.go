package identity

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestValues(t *testing.T) {
	for _, c := range []struct {
		values Values
		size   int
		some   map[int]string
		not    []string
		told   string
	}{
		{Values{Range: "1-254"}, 254, map[int]string{0: "1", 253: "254"}, []string{"0", "255", "007", "x", ""}, "the range 1-254"},
		{Values{Range: "7 - 7"}, 1, map[int]string{0: "7"}, []string{"6", "8"}, "the range 7-7"},
		{Values{Range: "0-65535"}, 65536, map[int]string{65535: "65535"}, []string{"65536"}, "the range 0-65535"},
		{Values{Names: []string{"red", "blue"}}, 2, map[int]string{0: "red", 1: "blue"}, []string{"green", ""}, "the names red, blue"},
		{
			Values{Prefix: "10.1.2.3/16", Bits: 24}, 256, map[int]string{0: "10.1.0.0/24", 1: "10.1.1.0/24", 255: "10.1.255.0/24"},
			[]string{"10.2.0.0/24", "10.1.0.0/25", "10.1.0.1/24", "10.1.0.0"}, "the /24 prefixes of 10.1.0.0/16",
		},
		{
			Values{Prefix: "fd00::/40", Bits: 48}, 256, map[int]string{0: "fd00::/48", 3: "fd00:0:3::/48"},
			[]string{"fd00::/47", "fd00:1:3::/48"}, "the /48 prefixes of fd00::/40",
		},
	} {
		s, err := c.values.check()
		if err != nil || s.size != c.size || s.String() != c.told {
			t.Errorf("%+v: %d values, %q: %v", c.values, s.size, s, err)
			continue
		}
		for i, want := range c.some {
			if got := s.value(i); got != want {
				t.Errorf("%s: %d is %s, want %s", s, i, got, want)
			}
		}
		for i := range s.size {
			if at, ok := s.place(s.value(i)); !ok || at != i {
				t.Fatalf("%s: %d is %s, which is found at %d, %t", s, i, s.value(i), at, ok)
			}
		}
		for _, other := range c.not {
			if i, ok := s.place(other); ok {
				t.Errorf("%s: %q is found at %d", s, other, i)
			}
		}
	}
}

func TestValuesThatAreRefused(t *testing.T) {
	for _, c := range []struct {
		values Values
		told   string
	}{
		{Values{}, "one of Range, Names"},
		{Values{Range: "1-2", Names: []string{"a"}}, "one of Range, Names"},
		{Values{Range: "2-1"}, "1-254"},
		{Values{Range: "5"}, "1-254"},
		{Values{Range: "-1-5"}, "1-254"},
		{Values{Range: "0-65536"}, "at most 65536"},
		{Values{Range: "0-99999999999999999999"}, "1-254"},
		{Values{Names: []string{"a", "b", "a"}}, "twice"},
		{Values{Names: []string{""}}, "name"},
		{Values{Names: longNames()}, "at most 16384"},
		{Values{Prefix: "10.0.0.0", Bits: 24}, "10.0.0.0/16"},
		{Values{Prefix: "10.0.0.0/16"}, "from 16 to 32"},
		{Values{Prefix: "10.0.0.0/8", Bits: 32}, "from 8 to 24"},
		{Values{Bits: 3}, "10.0.0.0/16"},
	} {
		if _, err := c.values.check(); err == nil || !strings.Contains(err.Error(), c.told) {
			t.Errorf("%+v: %v", c.values, err)
		}
	}
}

func longNames() []string {
	var names []string
	for i := range 100 {
		names = append(names, fmt.Sprintf("%d%s", i, strings.Repeat("x", 200)))
	}
	return names
}

func TestDuplicatesIn(t *testing.T) {
	got := DuplicatesIn(map[string]string{"n1": "10", "n2": "9", "n3": "10", "n4": "9", "n5": "8", "n6": "", "n7": "", "n8": "9"})
	want := []Duplicate{{"9", []string{"n2", "n4", "n8"}}, {"10", []string{"n1", "n3"}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := DuplicatesIn(nil); got != nil {
		t.Errorf("%v of nothing", got)
	}
}

// A pool in order has no duplicates, also when values went from one instance to another. What was written by hand is found.
func TestDuplicates(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p := w.process(nil)
		p.release(p.claim(named1("1-3", "a")), p.Clk.Wall())
		for _, name := range []string{"b", "c", "d"} {
			p.claim(named1("1-3", name)) // one of them gets the value of a
		}
		all, err := Duplicates(t.Context(), p.Net, "machines")
		if err != nil || len(all) > 0 {
			t.Errorf("%v: %v", all, err)
		}
		c := &claim{st: p.Net, name: "machines", opts: Options{Name: "x/y"}}
		value := func(name string) string {
			rec, err := p.Net.Get(t.Context(), nameKey("machines", name))
			if err != nil {
				t.Fatal(err)
			}
			n, err := readNamed(rec)
			if err != nil {
				t.Fatal(err)
			}
			return n.Value
		}
		if err := c.bind(t.Context(), "", value("b")); err != nil {
			t.Fatal(err)
		}
		all, err = Duplicates(t.Context(), p.Net, "machines")
		if err != nil || len(all) != 1 || all[0].Value != value("b") || !slices.Equal(all[0].Holders, []string{"b", "x/y"}) {
			t.Errorf("%v: %v", all, err)
		}
		h, err := Claim(t.Context(), p.s, "more", Options{Values: Values{Range: "1-1"}})
		if err != nil {
			t.Fatal(err)
		}
		c.name = "more"
		if err := c.bind(t.Context(), "", h.Value()); err != nil {
			t.Fatal(err)
		}
		all, err = Duplicates(t.Context(), p.Net, "more")
		if err != nil || len(all) != 1 || !slices.Contains(all[0].Holders, p.m.Holder()) {
			t.Errorf("a holder without a name: %v: %v", all, err)
		}
		if _, err := Duplicates(t.Context(), p.Net, "others"); err == nil {
			t.Error("duplicates in a pool that nobody declared")
		}
	})
}
