package driver_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/fence"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

func TestCheckKey(t *testing.T) {
	long := strings.Repeat("k", store.MaxKey)
	for _, key := range []string{"k", " ", "a b", "/", "..", "%00", "日本語", "🔒", "e\u0301", "\uFFFD", long, strings.Repeat("é", store.MaxKey/2)} {
		if err := driver.CheckKey(key); err != nil {
			t.Errorf("CheckKey(%q): %v", key, err)
		}
		if err := driver.CheckPrefix(key); err != nil {
			t.Errorf("CheckPrefix(%q): %v", key, err)
		}
	}
	for key, says := range map[string]string{
		"": "at least one character", long + "k": "at most 255 bytes, not 256", "a\x00": `not '\x00'`, "a\n": `not '\n'`,
		"\xff": "UTF-8", "a\u00a0b": `not '\u00a0'`, "\u202e": `not '\u202e'`, "\u200d": `not '\u200d'`, "\U0010FFFF": `not '\U0010ffff'`,
	} {
		if err := driver.CheckKey(key); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "Key") {
			t.Errorf("CheckKey(%.20q): %v, want it to say %q", key, err, says)
		}
		if err := driver.CheckPrefix(key); (err == nil) != (key == "") {
			t.Errorf("CheckPrefix(%.20q): %v", key, err)
		}
	}
}

// The error shows a part of what is long, and nothing that a terminal would act on.
func TestInvalidErrorIsPlain(t *testing.T) {
	err := driver.CheckKey("\x1b[31m" + strings.Repeat("ключ", 100))
	if err == nil || strings.ContainsAny(err.Error(), "\x1b") || len(err.Error()) > 300 {
		t.Errorf("%v", err)
	}
}

func TestCheck(t *testing.T) {
	at := func(n int) []store.Term { return make([]store.Term, n) }
	for name, tt := range map[string]struct {
		rec  store.Record
		want bool
	}{
		"nothing":                   {store.Record{}, true},
		"a free record with a past": {store.Record{Token: 5, Past: at(store.MaxPast)}, true},
		"one ended term too many":   {store.Record{Past: at(store.MaxPast + 1)}, false},
		"the least TTL":             {store.Record{Owner: "a", Token: 1, TTL: store.MinTTL}, true},
		"a TTL too short":           {store.Record{Owner: "a", Token: 1, TTL: store.MinTTL - 1}, false},
		"a short TTL, no owner":     {store.Record{TTL: 1}, true},
		"the largest TTL":           {store.Record{TTL: store.MaxTTL}, true},
		"a TTL too long":            {store.Record{TTL: store.MaxTTL + 1}, false},
		"a TTL below 0":             {store.Record{TTL: -1}, false},
		"an owner without a token":  {store.Record{Owner: "a", TTL: time.Second}, false},
		"the largest token":         {store.Record{Token: fence.MaxToken}, true},
		"a token too large":         {store.Record{Token: fence.MaxToken + 1}, false},
		"a past token too large":    {store.Record{Past: []store.Term{{Token: fence.MaxToken + 1}}}, false},
		"a past owner too long":     {store.Record{Past: []store.Term{{Owner: strings.Repeat("x", store.MaxKey+1)}}}, false},
		"line breaks for people":    {store.Record{Info: map[string]string{"op\n": "a\nb\x00"}}, true},
		"an age":                    {store.Record{Age: -1, Version: "\x00"}, true}, // not the caller's to set
	} {
		tt.rec.Key = "k"
		if err := driver.Check(tt.rec); (err == nil) != tt.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}
