package driver_test

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leasehold/leasehold/internal/proof/records"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

// What writes and reads without reflection does as encoding/json does, byte for byte.
func TestCodecIsThatOfEncodingJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rec := records.Any().Draw(t, "record")
		b := checkWriters(t, rec)
		checkReaders(t, b)
		i := rapid.IntRange(0, len(b)-1).Draw(t, "spoilt at")
		checkReaders(t, append(append(b[:i:i], rapid.Byte().Draw(t, "byte")), b[i+1:]...))
		checkReaders(t, append(b[:i:i], b[i+1:]...))
		checkReaders(t, b[:i])
	})
}

// checkWriters returns rec as it is written.
func checkWriters(t rapid.TB, rec store.Record) []byte {
	t.Helper()
	if rec.Key == "" {
		rec.Key = "k"
	}
	want, err := driver.MarshalByReflection(rec)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := driver.Marshal(rec); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("written as\n%s, %v, want\n%s", got, err, want)
	}
	read, err := driver.Unmarshal(want)
	if err != nil {
		t.Fatal(err)
	}
	read.Key = rec.Key
	if got := driver.Canonical(rec); !reflect.DeepEqual(got, read) {
		t.Fatalf("canonical is\n%+v, and read is\n%+v", got, read)
	}
	return want
}

// checkReaders fails t unless what readRecord takes is what encoding/json reads.
func checkReaders(t rapid.TB, b []byte) {
	t.Helper()
	got, ok := driver.ReadRecord(b)
	if !ok {
		return
	}
	if want, err := driver.ReadAny(b); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%q is read as\n%+v, and by encoding/json as\n%+v, %v", b, got, want, err)
	}
}

// What is close to the form that Marshal writes, and isn't it.
func TestReadersAgree(t *testing.T) {
	for _, b := range []string{
		`{"v":1,"token":01}`, `{"v":1,"token":}`, `{"v":1,"token":-0}`, `{"v":1,"token":18446744073709551616}`, `{"v":1,"token":`,
		`{"v":1,"token":1}}`, `{"v":1,"token":1} `, `{"v":1,"token":1`, `{"v":12,"token":1}`,
		`{"v":1,"owner":"\xff","token":1}`, `{"v":1,"owner":"\xed\xa0\x80","token":1}`, "{\"v\":1,\"owner\":\"\xff\",\"token\":1}",
		`{"v":1,"owner":"a\u0062","token":1}`, "{\"v\":1,\"owner\":\"\t\",\"token\":1}", `{"v":1,"owner":"","token":1}`,
		`{"v":1,"token":1,"ttl":""}`, `{"v":1,"token":1,"ttl":"-1h1h"}`, `{"v":1,"token":1,"acquired":"2026-01-01T1:00:00Z"}`,
		`{"v":1,"token":1,"acquired":"2026-01-01T01:00:00,5Z"}`, `{"v":1,"token":1,"acquired":""}`, `{"v":1,"token":1,"info":{}}`,
		`{"v":1,"token":1,"info":{"a":"1","a":"2"}}`, `{"v":1,"token":1,"info":{"a":"1",}}`, `{"v":1,"token":1,"past":[]}`,
		`{"v":1,"token":1,"past":[{}]}`, `{"v":1,"token":1,"past":[["a",1,-0,0]]}`, `{"v":1,"token":1,"past":[["a",1,01,0]]}`,
		`{"v":1,"token":1,"past":[["a",1,9007199254740992,0]]}`, `{"v":1,"token":1,"past":[["a",1,0,0,""]]}`, `{"v":1,"token":1,"past":[["a",1,0,0],]}`,
		`{"v":1,"token":1,"past":[[0,1,0,0]]}`, `{"v":1,"token":1,"past":[["a",1,0,0],[00,1,0,0]]}`, `{"v":1,"token":1,"past":[["a",1,0,0],[0,1,0,0,0]]}`, `{"v":1,"token":1,"data":""}`, `{"v":1,"token":1,"data":"AB=="}`, `{"v":1,"token":1,"data":"AA"}`,
	} {
		checkReaders(t, []byte(b))
	}
}

// What Marshal writes needs no second reader, unless a text has to be escaped.
func TestReadRecordTakesWhatIsWritten(t *testing.T) {
	rec := long()
	for what, change := range map[string]func(){
		"all fields":      func() {},
		"no ASCII":        func() { rec.Note = "ßé日🔒" },
		"an empty record": func() { rec = store.Record{Key: "k"} },
	} {
		change()
		b, err := driver.Marshal(rec)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := driver.ReadRecord(b); !ok {
			t.Errorf("%s: not taken: %s, after %+v", what, b, got)
		}
	}
}

// Every byte that JSON has to escape, or may.
func TestTextsAreEscapedAsByEncodingJSON(t *testing.T) {
	for c := range rune(0x3000) {
		checkWriters(t, store.Record{Key: "k", Info: map[string]string{"a" + string(c): string(c) + string(c) + "z"}})
	}
}

// A time with the reading of a monotonic clock, and one in a zone of its own.
func TestCanonicalTimes(t *testing.T) {
	now, east := time.Now(), time.FixedZone("", 3600)
	checkWriters(t, store.Record{Key: "k", Acquired: now, Past: []store.Term{{From: now.In(east), Until: time.Time{}.In(east)}}})
	checkWriters(t, store.Record{Key: "k", Acquired: time.Time{}.In(east)})
}

// What Canonical returns can be written to.
func TestCanonicalSharesNoMemory(t *testing.T) {
	rec := long()
	kept, want := driver.Canonical(rec), driver.Canonical(long())
	rec.Info["host"], rec.Past[0].Why, rec.Data[0] = "other", "other", 'x'
	if !reflect.DeepEqual(kept, want) {
		t.Errorf("%+v, want %+v", kept, want)
	}
	rec.Key, rec.Version, rec.Age = "other", "17", time.Hour
	if got := driver.Canonical(rec); got.Key != "other" || got.Version != "" || got.Age != 0 {
		t.Errorf("key %q, version %q, age %v", got.Key, got.Version, got.Age)
	}
}

// readBack returns what has to come back for rec: times in UTC, nil for what is empty, no key.
func readBack(rec store.Record) store.Record {
	rec = rec.Clone()
	rec.Key, rec.Acquired = "", rec.Acquired.UTC()
	for i, p := range rec.Past {
		rec.Past[i].From, rec.Past[i].Until = p.From.UTC(), p.Until.UTC()
	}
	if len(rec.Info) == 0 {
		rec.Info = nil
	}
	if len(rec.Past) == 0 {
		rec.Past = nil
	}
	if len(rec.Data) == 0 {
		rec.Data = nil
	}
	return rec
}

func readBackKey(rec store.Record) store.Record {
	key := rec.Key
	rec = readBack(rec)
	rec.Key = key
	return rec
}

// long is a record as a busy name has it: all past terms, and no text that has to be escaped.
func long() store.Record {
	rec := full()
	rec.Key, rec.Info["op"] = "k", "backup"
	for i := len(rec.Past); i < store.MaxPast; i++ {
		term := rec.Past[0]
		term.Owner, term.Token = fmt.Sprintf("host-%d/4242/%s", i, strings.Repeat("f", 13)), term.Token+1
		rec.Past = append(rec.Past, term)
	}
	return rec
}

func BenchmarkMarshal(b *testing.B) {
	rec := long()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := driver.Marshal(rec); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUnmarshal(b *testing.B) {
	rec := long()
	data, err := driver.Marshal(rec)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := driver.Unmarshal(data); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCanonical(b *testing.B) {
	rec := long()
	b.ReportAllocs()
	for b.Loop() {
		if got := driver.Canonical(rec); got.Key != "k" {
			b.Fatal(got)
		}
	}
}
