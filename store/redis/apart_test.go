package redis

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leasehold/leasehold/internal/proof/records"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// long is a record with many fields and terms.
func long() store.Record {
	rec := store.Record{
		Key: "k", Owner: "host/42", Token: 9, TTL: 15 * time.Second, Acquired: time.Unix(1e9, 1).UTC(), Note: "alice: maintenance",
		Info: map[string]string{"host": "host", "op": "a <b>"}, Data: []byte{0, 1}, Nonce: "n1",
	}
	for n := range store.MaxPast {
		rec.Past = append(rec.Past, term(store.MaxPast-n))
	}
	return rec
}

// apart returns rec as engines keep it that keep its terms apart.
func apart(t rapid.TB, rec store.Record) (b []byte, terms []string) {
	t.Helper()
	b, err := marshalApart(rec)
	if err != nil {
		t.Fatal(err)
	}
	for _, term := range rec.Past {
		terms = append(terms, string(driver.MarshalTerm(term)))
	}
	return b, terms
}

// What is taken apart is the same again when it is put together.
func TestApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rec := records.Any().Draw(t, "record")
		b, terms := apart(t, rec)
		got, err := unmarshalApart(b, terms)
		want := driver.Canonical(rec)
		if want.Key = ""; err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("put together as\n%+v, %v, want\n%+v", got, err, want)
		}
		rec.Past = nil
		if whole, err := driver.Marshal(rec); err != nil || string(whole) != string(b) {
			t.Fatalf("without its terms it is\n%s, %v, want\n%s", b, err, whole)
		}
	})
}

// What driver.Marshal refuses, marshalApart does, with the same words.
func TestMarshalApartRefuses(t *testing.T) {
	for what, spoil := range map[string]func(*store.Record){
		"nothing":           func(*store.Record) {},
		"a field":           func(r *store.Record) { r.Owner = "\n" },
		"a term":            func(r *store.Record) { r.Past[0].Owner = "\n" },
		"too many terms":    func(r *store.Record) { r.Past = make([]store.Term, store.MaxPast+1) },
		"too large":         func(r *store.Record) { r.Data = make([]byte, store.MaxRecord) },
		"just too large":    func(r *store.Record) { r.Past, r.Data = r.Past[:1], make([]byte, store.MaxRecord/4*3-500) },
		"large by its text": func(r *store.Record) { r.Info = map[string]string{"a": strings.Repeat("<", store.MaxRecord/6)} },
	} {
		rec := long()
		spoil(&rec)
		_, want := driver.Marshal(rec)
		_, err := marshalApart(rec)
		if !reflect.DeepEqual(err, want) {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	// The limit is that of the whole: there are records that only their terms make too large.
	rec := long()
	b, _ := apart(t, rec)
	rec.Data = make([]byte, (store.MaxRecord-len(b)-200)/4*3)
	if _, err := marshalApart(rec); err == nil {
		t.Error("a record that is too large only with its terms is taken")
	}
	rec.Past = nil
	if _, err := marshalApart(rec); err != nil {
		t.Errorf("without them: %v", err)
	}
}

// Whatever the texts are, nothing panics, and what is accepted is a record that can be written.
func FuzzUnmarshalApart(f *testing.F) {
	b, terms := apart(f, long())
	f.Add(b, terms[0], terms[1])
	f.Add([]byte(`{"v":1,"token":0}`), `{"owner":"a"}`, `{"owner":"b"},{"owner":"c"}`)
	f.Add([]byte(`{"v":1,"token":0}`), `{"owner":"a"}],"nonce":"n","past":[{}`, `{}`)
	f.Fuzz(func(t *testing.T, b []byte, one, other string) {
		rec, err := unmarshalApart(b, []string{one, other})
		if err != nil {
			return
		}
		if rec.Key = "k"; len(rec.Past) != 2 {
			t.Fatalf("%d terms: %+v", len(rec.Past), rec)
		}
		if _, err := marshalApart(rec); err != nil {
			t.Fatalf("accepted, and can't be written: %v\n%+v", err, rec)
		}
	})
}
