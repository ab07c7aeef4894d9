package redis

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leasehold/leasehold/internal/proof/servers"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
	"github.com/leasehold/leasehold/store/storetest"
)

// term returns the n-th of a name.
func term(n int) store.Term {
	at := time.Unix(int64(n)*60, 0).UTC()
	return store.Term{Owner: fmt.Sprint("owner", n), Token: 1, From: at, Until: at.Add(time.Second), Why: "released"}
}

// hash is what a server keeps of a record: the version, and what the fields of terms hold.
type hash struct {
	version string
	past    [store.MaxPast]any
}

// put does what the script does, and returns how many terms it was sent.
func (h *hash) put(t rapid.TB, past []store.Term) int {
	t.Helper()
	version, fields := shelve(h.version, past)
	h.version = version
	for i := 0; i < len(fields); i += 2 {
		var n int
		if _, err := fmt.Sscanf(fields[i].(string), "past%d", &n); err != nil {
			t.Fatal(err)
		}
		h.past[n] = string(fields[i+1].([]byte))
	}
	return len(fields) / 2
}

func (h *hash) get(t rapid.TB) []store.Term {
	t.Helper()
	texts, err := terms(h.version, h.past[:])
	if err != nil {
		t.Fatal(err)
	}
	rec, err := unmarshalApart([]byte(`{"v":1,"token":0}`), texts)
	if err != nil {
		t.Fatal(err)
	}
	return rec.Past
}

// A write brings the terms that are new, and no other.
func TestATermIsSentOnce(t *testing.T) {
	var h hash
	var past []store.Term
	for n := range 3 * store.MaxPast {
		past = append([]store.Term{term(n)}, past[:min(len(past), store.MaxPast-1)]...)
		if sent := h.put(t, past); sent != 1 {
			t.Errorf("%d terms were sent for the new one of %d", sent, len(past))
		}
		if sent := h.put(t, past); sent != 0 {
			t.Errorf("%d terms were sent for none of %d", sent, len(past))
		}
		if got := h.get(t); !reflect.DeepEqual(got, past) {
			t.Fatalf("after %d terms there are\n%v, want\n%v", n, got, past)
		}
	}
}

// Whatever becomes of the terms, those that were put are those that are read.
func TestTermsThatChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h hash
		var past []store.Term
		n := 0
		fresh := func() store.Term { n++; return term(n) }
		t.Repeat(map[string]func(*rapid.T){
			"add":    func(*rapid.T) { past = append([]store.Term{fresh()}, past[:min(len(past), store.MaxPast-1)]...) },
			"nobody": func(*rapid.T) {},
			"cut":    func(t *rapid.T) { past = past[:rapid.IntRange(0, len(past)).Draw(t, "to")] },
			"drop":   func(t *rapid.T) { past = past[rapid.IntRange(0, len(past)).Draw(t, "from"):] },
			"change": func(t *rapid.T) {
				if len(past) > 0 {
					past = append([]store.Term(nil), past...)
					past[rapid.IntRange(0, len(past)-1).Draw(t, "which")] = fresh()
				}
			},
			"add two": func(*rapid.T) {
				past = append([]store.Term{fresh(), fresh()}, past[:min(len(past), store.MaxPast-2)]...)
			},
			"old version": func(*rapid.T) { h.version = newVersion() },
			"": func(t *rapid.T) {
				h.put(t, past)
				if got := h.get(t); len(got) != len(past) || len(past) > 0 && !reflect.DeepEqual(got, past) {
					t.Fatalf("read\n%v, want\n%v", got, past)
				}
			},
		})
	})
}

// Terms that differ in anything are others.
func TestDigestsTellTermsApart(t *testing.T) {
	seen := map[string]string{}
	base := term(7)
	for what, change := range map[string]func(*store.Term){
		"as it is": func(*store.Term) {}, "owner": func(t *store.Term) { t.Owner = "o" }, "token": func(t *store.Term) { t.Token++ },
		"from": func(t *store.Term) { t.From = t.From.Add(1) }, "from, by seconds": func(t *store.Term) { t.From = t.From.Add(-time.Hour) },
		"until": func(t *store.Term) { t.Until = t.Until.Add(1) }, "why": func(t *store.Term) { t.Why = "" },
		"a letter from the one to the other": func(t *store.Term) { t.Owner, t.Why = t.Owner+t.Why[:1], t.Why[1:] },
	} {
		changed := base
		change(&changed)
		d := digest([]store.Term{changed})
		if other, ok := seen[d]; ok {
			t.Errorf("%s, and %s: %s", what, other, d)
		}
		seen[d] = what
	}
	base.From = base.From.In(time.FixedZone("", 3600))
	if digest([]store.Term{base}) != digest([]store.Term{term(7)}) {
		t.Error("the same moment in another zone is another term")
	}
}

// Texts that callers pass as versions, and that none of this package's are.
func TestVersionsOfOthers(t *testing.T) {
	version, _ := shelve("", []store.Term{term(1)})
	full, _ := shelve("", make([]store.Term, store.MaxPast))
	for _, v := range []string{
		"", "v", newVersion(), version[:len(version)-1], version + "x", strings.Replace(version, "-01", "+01", 1),
		strings.Replace(version, "-01", "-81", 1), strings.Replace(version, "-01", "-00", 1), strings.Replace(version, "-01", "-09", 1),
		strings.Replace(version, "-01", "-08", 1), strings.Replace(full, "-78", "-77", 1), strings.Repeat("é", len(version)/2),
	} {
		if s, ok := shelfOf(v); ok {
			t.Errorf("%q says %+v", v, s)
		}
	}
	for _, v := range []string{version, full} {
		if s, ok := shelfOf(v); !ok || v[randomSize:] != s.String() {
			t.Errorf("%q says %+v, %v", v, s, ok)
		}
	}
}

// A record that has its terms inside, as others may write it, is read, and gives them fields of their own when it changes.
func TestTermsInsideTheRecord(t *testing.T) {
	srv := servers.Redis(t, servers.Shared())
	s, client := mustOpen(t, srv, srv.Addr, Options{Prefix: newPrefix()}), raw(t, srv)
	rec := held("k", 7)
	rec.Past = []store.Term{term(3), term(2)}
	body, err := driver.Marshal(rec)
	if err != nil {
		t.Fatal(err)
	}
	old := newVersion()
	do(t, client, "hset", s.opts.Prefix+"k", "version", old, "record", body, "written", "1")
	got, err := s.Get(t.Context(), "k")
	if err != nil || !reflect.DeepEqual(got.Past, rec.Past) || got.Version != old {
		t.Fatalf("%+v, %v", got, err)
	}
	got.Past = append([]store.Term{term(4)}, got.Past...)
	put := storetest.MustPut(t, s, got)
	again, err := s.Get(t.Context(), "k")
	if err != nil || !reflect.DeepEqual(again, put) || !reflect.DeepEqual(again.Past, got.Past) {
		t.Errorf("%+v, %v, want %+v", again, err, put)
	}
	if text := do(t, client, "hget", s.opts.Prefix+"k", "record").(string); strings.Contains(text, "past") {
		t.Errorf("the record still has them: %s", text)
	}
}

// A term that is missing or that can't be read is an error that names its field, and stays as it is.
func TestTermsThatCantBeRead(t *testing.T) {
	srv := servers.Redis(t, servers.Shared())
	s, client := mustOpen(t, srv, srv.Addr, Options{Prefix: newPrefix()}), raw(t, srv)
	rec := held("k", 7)
	rec.Past = []store.Term{term(3), term(2), term(1)}
	rec = storetest.MustPut(t, s, rec)
	key := s.opts.Prefix + "k"
	check := func(want ...string) {
		t.Helper()
		other := rec
		other.Version = newVersion()
		_, getErr := s.Get(t.Context(), "k")
		_, putErr := s.Put(t.Context(), other)
		_, waitErr := s.Wait(t.Context(), "k", other.Version)
		for what, err := range map[string]error{"Get": getErr, "Put": putErr, "Wait": waitErr, "Delete": s.Delete(t.Context(), "k", other.Version)} {
			for _, text := range append(want, "k: ") {
				if !errors.Is(err, store.ErrCorrupt) || !strings.Contains(err.Error(), text) {
					t.Errorf("%s: %v, want one with %q", what, err, text)
				}
			}
		}
	}
	do(t, client, "hset", key, "past1", `{"owner":"a","token":"many"}`)
	check("past1")
	do(t, client, "hset", key, "past1", `{},{}`)
	check("past1", "where there should be 1")
	do(t, client, "hdel", key, "past1")
	check("lacks past1")
	if n := do(t, client, "hlen", key); n != int64(5) {
		t.Errorf("there are %v fields, want 5", n)
	}
}

// Whatever a server answers, nothing panics, and what is no record is said to be none.
func FuzzRecord(f *testing.F) {
	s := &Store{opts: Options{ClockStep: 1}}
	version, fields := shelve("", []store.Term{term(2), term(1)})
	f.Add(version, `{"v":1,"token":0}`, "1", string(fields[1].([]byte)), string(fields[3].([]byte)))
	f.Add("v", `{"v":1,"token":0,"past":[{"owner":"a"}]}`, "-1", "", "x")
	f.Fuzz(func(t *testing.T, version, body, written, past0, past1 string) {
		rec, err := s.record("k", []any{answerFound, "5", version, body, written, past1, past0, nil, nil, nil, nil, nil, nil})
		if err != nil {
			if !errors.Is(err, store.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if _, err := marshalApart(rec); err != nil {
			t.Fatalf("accepted, and can't be written: %v\n%+v", err, rec)
		}
	})
}
