package driver_test

import (
	"bytes"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/internal/proof/records"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// full is a record with every field set, the one in testdata.
func full() store.Record {
	at := time.Date(2026, 11, 21, 10, 13, 16, 123456789, time.UTC)
	return store.Record{
		Owner: "host/42/f00d", Token: fence.MaxToken, TTL: 15*time.Second + 900*time.Millisecond + 1, Session: "session/f00d",
		Acquired: at.In(time.FixedZone("", 3600)), Intervention: store.InterventionBroken, Note: "alice: maintenance",
		Info: map[string]string{"host": "host", "pid": "42", "op": "a <b> & \"c\""},
		Past: []store.Term{
			{Owner: "old", Token: 1795252396123, From: at.Add(-time.Hour), Until: at.Add(-time.Minute), Why: "released"},
			{Owner: "older", Token: 1795248796123, From: at.Add(-2 * time.Hour), Until: at.Add(-time.Hour), Why: "released"},
			{Owner: "old", Token: 7, From: at.Add(-3 * time.Hour)},
		},
		Data: []byte{0, 1, 0xff}, Nonce: "n1",
	}
}

// Records that are stored somewhere have to be readable for ever: a change of these bytes is a change of the format.
func TestWireFormat(t *testing.T) {
	for name, rec := range map[string]store.Record{"empty": {}, "full": full(), "kind": {Kind: store.KindSemaphore, Token: 7, Data: []byte("{}")}} {
		rec.Key = "k"
		want, err := os.ReadFile("testdata/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		want = bytes.TrimSpace(want)
		got, err := driver.Marshal(rec)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is written as\n%s, %v, want\n%s", name, got, err, want)
		}
		read, err := driver.Unmarshal(want)
		rec.Key = ""
		if !rec.Acquired.IsZero() {
			rec.Acquired = rec.Acquired.UTC()
		}
		if err != nil || !reflect.DeepEqual(read, rec) {
			t.Errorf("%s is read as\n%+v, %v, want\n%+v", name, read, err, rec)
		}
	}
}

// A term may be an object, too, as they all were.
func TestTermsAsObjects(t *testing.T) {
	rec := full()
	want, err := os.ReadFile("testdata/objects.json")
	if err != nil {
		t.Fatal(err)
	}
	rec.Acquired = rec.Acquired.UTC()
	if read, err := driver.Unmarshal(want); err != nil || !reflect.DeepEqual(read, rec) {
		t.Errorf("read as\n%+v, %v, want\n%+v", read, err, rec)
	}
}

// The key, the version and the age are the engine's.
func TestMarshalLeavesTheEnginesFieldsOut(t *testing.T) {
	rec := store.Record{Key: "k"}
	plain, err := driver.Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	rec.Key, rec.Version, rec.Age = "other", "17", time.Hour
	if b, err := driver.Marshal(rec); err != nil || !bytes.Equal(b, plain) {
		t.Errorf("%s, %v, want %s", b, err, plain)
	}
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rec := records.Any().Draw(t, "record")
		b, err := driver.Marshal(rec)
		if err != nil {
			t.Fatal(err)
		}
		got, err := driver.Unmarshal(b)
		if err != nil {
			t.Fatalf("%v: %s", err, b)
		}
		if want := readBack(rec); !reflect.DeepEqual(got, want) {
			t.Fatalf("read back as\n%+v, want\n%+v", got, want)
		}
	})
}

func TestUnmarshalRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ in, says string }{
		"nothing":             {"", "unexpected end"},
		"half a record":       {`{"v":1,"tok`, "unexpected end"},
		"no object":           {"[]", "cannot unmarshal"},
		"no format":           {`{"token":1}`, "format 0"},
		"a later format":      {`{"v":2,"token":1}`, "format 2"},
		"a bad TTL":           {`{"v":1,"token":1,"ttl":"15"}`, "ttl"},
		"a TTL too long":      {`{"v":1,"token":1,"ttl":"9000h"}`, "TTL"},
		"a token too large":   {`{"v":1,"token":9007199254740992}`, "Token"},
		"a token below 0":     {`{"v":1,"token":-1}`, "cannot unmarshal"},
		"an owner, no token":  {`{"v":1,"token":0,"owner":"a","ttl":"1s"}`, "Token"},
		"data not in base64":  {`{"v":1,"token":0,"data":"!"}`, "base64"},
		"a line break":        {`{"v":1,"token":0,"session":"a\nb"}`, "Session"},
		"nine ended terms":    {`{"v":1,"token":0,"past":[{},{},{},{},{},{},{},{},{}]}`, "Past"},
		"a year before 0":     {`{"v":1,"token":0,"acquired":"0000-01-01T00:00:00+23:59"}`, "Acquired"},
		"a term of three":     {`{"v":1,"token":0,"past":[["a",1,2]]}`, "past: term 0: 3 values"},
		"an owner not there":  {`{"v":1,"token":0,"past":[["a",1,2,3],[1,1,2,3]]}`, "past: term 1: owner: 1: want"},
		"an owner before all": {`{"v":1,"token":0,"past":[["a",1,2,3],[-1,1,2,3]]}`, "owner: -1: want"},
		"no owner":            {`{"v":1,"token":0,"past":[[null,1,2,3]]}`, "owner: null: want"},
		"half a token":        {`{"v":1,"token":0,"past":[["a",1.5,2,3]]}`, "past: term 0: token: "},
		"half a nanosecond":   {`{"v":1,"token":0,"past":[["a",1,0.5,3]]}`, "from: 0.5: want"},
		"no end":              {`{"v":1,"token":0,"past":[["a",1,2,null]]}`, "until: null: want"},
		"a day alone":         {`{"v":1,"token":0,"past":[["a",1,2,"2026-01-01"]]}`, "past: term 0: until: "},
		"a reason not there":  {`{"v":1,"token":0,"past":[["a",1,2,3,0]]}`, "why: 0: want"},
		"years later":         {`{"v":1,"token":0,"past":[["a",9007199254740991,0,0]]}`, "Past"},
		"a year beyond 9999":  {`{"v":1,"token":0,"past":[{"from":"9999-12-31T23:59:59-01:00"}]}`, "Past"},
		"more than MaxRecord": {`{"v":1,"token":0,"data":"` + strings.Repeat("AAAA", store.MaxRecord/4) + `"}`, "at most 65536"},
		"more, when written":  {`{"v":1,"token":0,"info":{"k":"` + strings.Repeat("<", store.MaxRecord/5) + `"}}`, "at most 65536"},
	} {
		got, err := driver.Unmarshal([]byte(tt.in))
		if err == nil || !reflect.DeepEqual(got, store.Record{}) {
			t.Errorf("%s: %+v, %v; want an error and no record", name, got, err)
		} else if !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: the error is %q, want it to say %q", name, err, tt.says)
		}
	}
}

// Fields of a later version are left out, not refused.
func TestUnmarshalIgnoresUnknownFields(t *testing.T) {
	got, err := driver.Unmarshal([]byte(`{"v":1,"owner":"a","token":3,"ttl":"1s","colour":{"deep":["blue"]}}`))
	if want := (store.Record{Owner: "a", Token: 3, TTL: time.Second}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

// Whatever the bytes are, nothing panics, and what is accepted is a record that can be written and comes back.
func FuzzUnmarshal(f *testing.F) {
	for _, name := range []string{"empty", "full"} {
		b, err := os.ReadFile("testdata/" + name + ".json")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"v":1,"token":0,"past":[["a",1,-2,3,"b"],[0,1,"0000-01-01T00:00:00Z",9007199254740992,0,"later"]]}`))
	f.Add([]byte(`{"v":1,"token":0,"acquired":"0000-01-01T00:00:00+23:59"}`))
	f.Add([]byte(`{"v":1,"token":0,"past":[{"from":"9999-12-31T23:59:59-23:59","why":"\u2028"}],"ttl":"1h1ns"}`))
	f.Add([]byte(`{"v":1,"token":1e0,"ttl":"-0s","info":{"\ud800":"<"},"data":"AA\n=="}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		checkReaders(t, b)
		rec, err := driver.Unmarshal(b)
		if err != nil {
			return
		}
		checkWriters(t, rec)
		rec.Key = "k"
		written, err := driver.Marshal(rec)
		if err != nil {
			t.Fatalf("accepted, and can't be written: %v\n%+v", err, rec)
		}
		again, err := driver.Unmarshal(written)
		again.Key = "k"
		if err != nil || !reflect.DeepEqual(again, readBackKey(rec)) {
			t.Fatalf("read as\n%+v, and when written and read again as\n%+v, %v", rec, again, err)
		}
	})
}

// Marshal refuses with the name of the field.
func TestMarshalRefuses(t *testing.T) {
	far := time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	for field, spoil := range map[string]func(*store.Record){
		"Key":          func(r *store.Record) { r.Key = "" },
		"Owner":        func(r *store.Record) { r.Owner = strings.Repeat("x", store.MaxKey+1) },
		"Token":        func(r *store.Record) { r.Token = fence.MaxToken + 1 },
		"TTL":          func(r *store.Record) { r.TTL = -time.Second },
		"Session":      func(r *store.Record) { r.Session = "\x7f" },
		"Acquired":     func(r *store.Record) { r.Acquired = far },
		"Intervention": func(r *store.Record) { r.Intervention = "\n" },
		"Note":         func(r *store.Record) { r.Note = "\xff" },
		"Info":         func(r *store.Record) { r.Info = map[string]string{"\xff": ""} },
		"Past":         func(r *store.Record) { r.Past = []store.Term{{Until: far}} },
		"Nonce":        func(r *store.Record) { r.Nonce = "\u200b" },
		"record":       func(r *store.Record) { r.Data = make([]byte, store.MaxRecord) },
	} {
		rec := full()
		rec.Key = "k"
		spoil(&rec)
		b, err := driver.Marshal(rec)
		var inv *store.InvalidError
		if b != nil || !errors.As(err, &inv) || !errors.Is(err, store.ErrInvalid) || inv.Field != field || inv.Want == "" || inv.Value == "" {
			t.Errorf("%s: %v, want an *InvalidError about it", field, err)
		}
		if again := driver.Check(rec); !reflect.DeepEqual(again, err) {
			t.Errorf("%s: Check says %v, and Marshal %v", field, again, err)
		}
	}
}
