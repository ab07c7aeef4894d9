package flake

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A layout is a text, and the text that layout: ids of one are those of the other.
func TestFinding_I5_ALayoutIsAText(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"twitter", "twitter"},
		{"snowflake", "twitter"},
		{"epoch=2010-11-04T01:42:54.657Z,unit=1ms,time=41,node=10,sequence=12", "twitter"},
		{"epoch=1288834974657, time=41, node=10, sequence=12", "twitter"},
		{"bits=64,unused=1,time=41,node=10,sequence=12,epoch=2010-11-04T02:42:54.657+01:00", "twitter"},
		{"epoch=2020-01-01,time=41,node=10,sequence=12", "tsid"}, // whose 42nd bit is the sign
		{"epoch=2014-09-01,unit=10ms,time=39,sequence=8,node=16", "sonyflake"},
		{"epoch=0,unit=1s,bits=96,time=32,node=40,sequence=24", "objectid"},
		{"epoch=1314220021721,time=40,node=13,sequence=10", "instagram"},
		{"epoch=2020-01-01,sequence=12:reversed,node=10:reversed,time=41:reversed", "reversed"},
		{"epoch=2015-01-01,bits=64,time=42,node=10,sequence=12", "epoch=2015-01-01T00:00:00Z,unit=1ms,time=41,node=10,sequence=12"}, // Discord's
		{"epoch=2026-01-01,unit=100us,bits=70,unused=1,unused=2,time=41,node=10:reversed,sequence=16",
			"epoch=2026-01-01T00:00:00Z,unit=100us,bits=70,unused=3,time=41,node=10:reversed,sequence=16"},
	} {
		l, err := ParseLayout(c.text)
		if err != nil || l.String() != c.want || l.Name() != c.want {
			t.Errorf("%s: %s named %s, %v; want %s", c.text, l, l.Name(), err, c.want)
			continue
		}
		if again, err := ParseLayout(l.String()); err != nil || again.String() != c.want || again.Bits() != l.Bits() {
			t.Errorf("%s, again: %s, %v", c.text, again, err)
		}
		if _, err := NewLayout(l.Spec()); err != nil {
			t.Errorf("%s: made again from its Spec: %v", c.text, err)
		}
	}
	for _, l := range Layouts() {
		if again, err := ParseLayout(l.Spec().String()); err != nil || again.Name() != l.Name() || again.Bits() != l.Bits() {
			t.Errorf("%s is %s, of %d bits: %v", l.Spec(), again, again.Bits(), err)
		}
	}
	if text := (Layout{}).String(); text != "" {
		t.Errorf("none: %q", text)
	}
}

// Any layout has a text; what it describes makes the same ids.
func TestFinding_I5_TheTextMakesTheSameIDs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := anyLayout(rt)
		for _, text := range []string{l.String(), l.Spec().String()} {
			again, err := ParseLayout(text)
			if err != nil || again.String() != l.String() {
				rt.Fatalf("%s: %s, %v; want %s", text, again, err, l)
			}
			value := func(p Part) uint64 { return rapid.Uint64Range(0, l.parts[p].max()).Draw(rt, p.String()) }
			p := Parts{l.start(rapid.Int64Range(0, int64(l.ticks)-1).Draw(rt, "tick")), value(Node), value(Sequence), value(Metadata)}
			if l.Bits() <= 64 {
				same[ID](rt, l, again, p)
			} else {
				same[ID96](rt, l, again, p)
			}
		}
	})
}

func same[T Value](rt *rapid.T, a, b Layout, p Parts) {
	want, err := Encode[T](a, p)
	if err != nil {
		rt.Fatal(err)
	}
	if got, err := Encode[T](b, p); err != nil || got != want {
		rt.Fatalf("%+v is %v as %s, and %v as %s: %v", p, want, a.Spec(), got, b.Spec(), err)
	}
	if !a.Exhausted().Equal(b.Exhausted()) {
		rt.Fatalf("%s ends at %v, %s at %v", a.Spec(), a.Exhausted(), b.Spec(), b.Exhausted())
	}
}

// What is wrong with a text names the field, its value, and what is wanted.
func TestFinding_I5_TextsThatAreNoLayout(t *testing.T) {
	for text, want := range map[string]string{
		"":         `layout "": want one of twitter, sonyflake, `,
		"twiter":   "or a specification such as epoch=2026-01-01,unit=1ms,time=41",
		"twitter ": "want one of",
		"epoch=2026-01-01,time=41,machine=10,sequence=12":       "machine=10: want epoch, unit, bits, time, node, sequence, metadata or unused",
		"epoch=2026-01-01,time=41,node=10,sequence":             "sequence=: want 1 to 64 bits, such as sequence=10",
		"epoch=2026-01-01,time=41x,node=10,sequence=12":         "time=41x: want 1 to 64 bits",
		"epoch=2026-01-01,time=-1":                              "time=-1: want 1 to 64 bits",
		"epoch=2026-01-01,time=65":                              "time=65: want 1 to 64 bits",
		"epoch=2026-01-01,time=41:backwards,node=22":            "time=41:backwards: want 1 to 64 bits, such as time=10, with :reversed or without",
		"epoch=2026-01-01,time=41,time=10,sequence=12":          "time=10: time is there twice: want it once",
		"epoch=2026-01-01,epoch=2027-01-01,time=41":             "epoch=2027-01-01: epoch is there twice",
		"time=41,node=10,sequence=12":                           "epoch is missing: from when on time is counted, such as epoch=2026-01-01",
		"epoch=yesterday,time=41,node=10,sequence=12":           "epoch=yesterday: want a date (2026-01-01), a time (2026-01-01T00:00:00Z), or ms since 1970",
		"epoch=1999999999999999,time=41,node=10,sequence=12":    "want one in 1970 to 2200",
		"epoch=2026-01-01,unit=1,time=41,node=10,sequence=12":   "unit=1: want 1us to 1h, such as 1ms",
		"epoch=2026-01-01,unit=1ns,time=41,node=10,sequence=12": "unit 1ns: want 1µs to 1h",
		"epoch=2026-01-01,time=41,node=10,sequence=11":          "the parts have 62 bits together: want 63, or bits=62 if ids are to be as long",
		"epoch=2026-01-01,bits=53,time=41,node=10,sequence=12":  "bits=53: the parts have 63 bits together: want as many",
		"epoch=2026-01-01,bits=x,time=41,node=10,sequence=12":   "bits=x: want how long ids are, such as 63",
		"epoch=2026-01-01,bits=97,time=41,metadata=56":          "97 bits: want 96 at most",
		"epoch=2026-01-01,node=51,sequence=12":                  "it has no time: want one bit of it at least",
		"epoch=2026-01-01,bits=64,sequence=12,node=10,time=42":  "begin with an unused bit",
		"epoch=2026-01-01,bits=73,time=41,sequence=22,node=10":  "want 62 together at most",
		"epoch=2026-01-01," + strings.Repeat("unused=1,", 60):   "bytes: want 400 at most",
		"epoch=2026-01-01,time=41,node=10,sequence=12,":         "=: want epoch, unit",
		"name=orders,epoch=2026-01-01,time=41,node=22":          "name=orders: want epoch",
	} {
		if l, err := ParseLayout(text); err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "layout ") {
			t.Errorf("%q: %q, %v; want %q", text, l, err, want)
		}
	}
}

func FuzzParseLayout(f *testing.F) {
	for _, l := range Layouts() {
		f.Add(l.Name())
		f.Add(l.Spec().String())
	}
	f.Add(example)
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ParseLayout(text)
		if err != nil {
			return
		}
		if again, err := ParseLayout(l.String()); err != nil || again.String() != l.String() {
			t.Errorf("%q: %s, then %s: %v", text, l, again, err)
		}
	})
}

// An ObjectId of MongoDB's documentation says when it was made, and an id of Instagram's article which shard made it.
func TestFinding_I5_IDsOfOthers(t *testing.T) {
	id, err := ParseHex[ID96]("507f1f77bcf86cd799439011")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Decode(ObjectID(), id)
	if err != nil || !p.Time.Equal(time.Date(2012, 10, 17, 21, 13, 27, 0, time.UTC)) || p.Node != 0xbcf86cd799 || p.Sequence != 0x439011 {
		t.Errorf("%+v, %v", p, err)
	}
	// 1387263000 ms after the epoch, by a user 31341 of 2000 shards, the 5001st of that one: as the article computes it.
	got, err := Decode(Instagram(), ID(1387263000<<23|1341<<10|5001%1024))
	if err != nil || got.Time.Sub(Instagram().Spec().Epoch) != 1387263000*time.Millisecond || got.Node != 1341 || got.Sequence != 905 {
		t.Errorf("%+v, %v", got, err)
	}
}
