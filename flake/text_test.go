package flake

import (
	"cmp"
	"database/sql"
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func anyID(rt *rapid.T) ID { return ID(rapid.Int64Min(0).Draw(rt, "id")) }

func anyID96(rt *rapid.T) ID96 {
	return makeID96(word{uint64(rapid.Uint32().Draw(rt, "hi")), rapid.Uint64().Draw(rt, "lo")})
}

// TestTextsAreReadAndOrdered sees that each text is read as what it was written from, and that texts are in the order of ids.
func TestTextsAreReadAndOrdered(t *testing.T) {
	t.Run("64", rapid.MakeCheck(func(rt *rapid.T) {
		a, b := anyID(rt), anyID(rt)
		ordered(rt, a, b, a.Compare(b), ParseBase32[ID], ID.Base32)
		ordered(rt, a, b, a.Compare(b), ParseBase62[ID], ID.Base62)
		ordered(rt, a, b, a.Compare(b), ParseHex[ID], ID.Hex)
		if got, err := Parse(a.String()); got != a || err != nil {
			rt.Fatalf("%v: %v, %v", a, got, err)
		}
	}))
	t.Run("96", rapid.MakeCheck(func(rt *rapid.T) {
		a, b := anyID96(rt), anyID96(rt)
		ordered(rt, a, b, a.Compare(b), ParseBase32[ID96], ID96.Base32)
		ordered(rt, a, b, a.Compare(b), ParseBase62[ID96], ID96.Base62)
		ordered(rt, a, b, a.Compare(b), ParseHex[ID96], ID96.Hex)
		if w, v := a.word(), b.word(); cmp.Or(cmp.Compare(w.hi, v.hi), cmp.Compare(w.lo, v.lo)) != a.Compare(b) {
			rt.Fatalf("%v and %v are compared otherwise than their numbers", a, b)
		}
	}))
}

func ordered[T Value](rt *rapid.T, a, b T, order int, parse func(string) (T, error), text func(T) string) {
	for _, id := range []T{a, b} {
		if got, err := parse(text(id)); got != id || err != nil {
			rt.Fatalf("%v is written as %s, and read as %v, %v", id, text(id), got, err)
		}
	}
	if got := strings.Compare(text(a), text(b)); got != order {
		rt.Fatalf("%v and %v are in order %d, their texts %s and %s in %d", a, b, order, text(a), text(b), got)
	}
}

func TestTextsAtTheirBounds(t *testing.T) {
	const most = ID(1<<63 - 1)
	last := makeID96(word{1<<32 - 1, 1<<64 - 1})
	for got, want := range map[string]string{
		ID(0).Base32(): "0000000000000", most.Base32(): "7ZZZZZZZZZZZZ", ID(-1).Base32(): "FZZZZZZZZZZZZ",
		ID(61).Base62(): "0000000000z", most.Base62(): "AzL8n0Y58m7", most.Hex(): "7fffffffffffffff",
		last.Base32(): "1" + strings.Repeat("Z", 19), last.Base62(): "1f2SI9UJPXvb7vdJ1", last.Hex(): strings.Repeat("f", 24),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	for _, id := range []ID{0, most, -1, -1 << 63} {
		for name, parsed := range map[string]func() (ID, error){
			"base 32": func() (ID, error) { return ParseBase32[ID](id.Base32()) },
			"base 62": func() (ID, error) { return ParseBase62[ID](id.Base62()) },
			"hex":     func() (ID, error) { return ParseHex[ID](id.Hex()) },
			"decimal": func() (ID, error) { return Parse(id.String()) },
		} {
			if got, err := parsed(); got != id || err != nil {
				t.Errorf("%s: %d is read as %d, %v", name, id, got, err)
			}
		}
	}
	if got, err := ParseBase32[ID]("iIlLoO0abcdef"); err != nil || got.Base32() != "1111000ABCDEF" {
		t.Errorf("%v, %v", got.Base32(), err)
	}
}

func TestTextsThatAreNone(t *testing.T) {
	for _, s := range []string{"", "0", "G000000000000", "ZZZZZZZZZZZZZ", "000000000000U", "00000000000000", "000000000000é", "-000000000000"} {
		if id, err := ParseBase32[ID](s); err == nil || !strings.Contains(err.Error(), "want 13 characters of Crockford's base 32") {
			t.Errorf("%q: %v, %v", s, id, err)
		}
	}
	for _, s := range []string{"LygHa16AHYG", "zzzzzzzzzzz", "0000000000-"} { // 2^64, and more
		if id, err := ParseBase62[ID](s); err == nil {
			t.Errorf("%q: %v", s, id)
		}
	}
	for _, s := range []string{"2" + strings.Repeat("0", 19), strings.Repeat("Z", 20)} { // 2^96, and more
		if id, err := ParseBase32[ID96](s); err == nil {
			t.Errorf("%q: %v", s, id)
		}
	}
	for _, s := range []string{"", "+1", "01", "-0", "1.0", "1e3", "9223372036854775808", " 1"} {
		if id, err := Parse(s); err == nil {
			t.Errorf("%q: %v", s, id)
		}
	}
}

func TestJSON(t *testing.T) {
	type row struct {
		ID   ID            `json:"id"`
		Wide ID96          `json:"wide"`
		Of   map[ID]string `json:"of"`
	}
	in := row{1<<62 + 1, makeID96(word{7, 9}), map[ID]string{5: "five"}}
	b, err := json.Marshal(in)
	if err != nil || string(b) != `{"id":"4611686018427387905","wide":"`+in.Wide.Base32()+`","of":{"5":"five"}}` {
		t.Fatalf("%s, %v", b, err)
	}
	var out row
	if err := json.Unmarshal(b, &out); err != nil || out.ID != in.ID || out.Wide != in.Wide || out.Of[5] != "five" {
		t.Errorf("%+v, %v", out, err)
	}
	var id ID
	if err := json.Unmarshal([]byte(`4611686018427387905`), &id); err != nil || id != in.ID {
		t.Errorf("a number: %v, %v", id, err)
	}
	for _, s := range []string{`1.0`, `1e3`, `"x"`, `true`, `{}`, `9223372036854775808`, `""`} {
		if err := json.Unmarshal([]byte(s), &id); err == nil || id != in.ID {
			t.Errorf("%s: %v, %v", s, id, err)
		}
	}
	if err := json.Unmarshal([]byte(`null`), &id); err != nil || id != in.ID {
		t.Errorf("null: %v, %v", id, err)
	}
}

func TestSQL(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		id, wide := anyID(rt), anyID96(rt)
		v, _ := id.Value()
		w, _ := wide.Value()
		for _, src := range []any{v, id.String(), []byte(id.String())} {
			var got ID
			if err := got.Scan(src); err != nil || got != id {
				rt.Fatalf("%v from %T: %v, %v", id, src, got, err)
			}
		}
		for _, src := range []any{w, wide.Base32(), []byte(wide.Base32()), wide.Hex(), []byte(wide.Hex())} {
			var got ID96
			if err := got.Scan(src); err != nil || got != wide {
				rt.Fatalf("%v from %T: %v, %v", wide, src, got, err)
			}
		}
	})
	var id ID
	var wide ID96
	for _, src := range []any{nil, 1.5, true, "x", []byte("x"), uint64(3)} {
		if err := id.Scan(src); err == nil {
			t.Errorf("an ID from %v: %v", src, id)
		}
		if err := wide.Scan(src); err == nil {
			t.Errorf("an ID96 from %v: %v", src, wide)
		}
	}
	var null sql.Null[ID]
	if err := null.Scan(nil); err != nil || null.Valid {
		t.Errorf("%+v, %v", null, err)
	}
}

// What a parser takes it writes again as it was, but for the case of letters and Crockford's readings.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"7ZZZZZZZZZZZZ", "01226N0640J7K", "AzL8n0Y58m7", "7fffffffffffffff", "-1", "\"12\"", "iIlLoO0abcdef", "00000000000000000000", "\"0\" "} {
		f.Add(s)
	}
	canon := strings.NewReplacer("I", "1", "L", "1", "O", "0")
	f.Fuzz(func(t *testing.T, s string) {
		crockford := canon.Replace(strings.ToUpper(s))
		if id, err := ParseBase32[ID](s); err == nil && id.Base32() != crockford {
			t.Errorf("%q: %s", s, id.Base32())
		}
		if id, err := ParseBase32[ID96](s); err == nil && id.Base32() != crockford {
			t.Errorf("%q: %s", s, id.Base32())
		}
		if id, err := ParseBase62[ID](s); err == nil && id.Base62() != s {
			t.Errorf("%q: %s", s, id.Base62())
		}
		if id, err := ParseBase62[ID96](s); err == nil && id.Base62() != s {
			t.Errorf("%q: %s", s, id.Base62())
		}
		if id, err := ParseHex[ID](s); err == nil && id.Hex() != strings.ToLower(s) {
			t.Errorf("%q: %s", s, id.Hex())
		}
		if id, err := Parse(s); err == nil && id.String() != s {
			t.Errorf("%q: %s", s, id)
		}
		var id ID
		value := strings.Trim(s, " \t\r\n")
		if err := id.UnmarshalJSON([]byte(s)); err == nil && value != "null" && id.String() != strings.Trim(value, "\"") && !strings.Contains(s, `\`) {
			t.Errorf("%q: %s", s, id)
		}
	})
}
