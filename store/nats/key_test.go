package nats

import (
	"regexp"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/driver"
)

func TestEncode(t *testing.T) {
	for key, want := range map[string]string{
		"billing":           "billing",
		"team-a/Billing_2":  "team-a/Billing_2",
		".session/f00d":     "=2Esession/f00d",
		"a b.c":             "a=20b=2Ec",
		"_kv":               "=5Fkv",
		"a=b":               "a=3Db",
		">":                 "=3E",
		"*":                 "=2A",
		"日":                 "=E6=97=A5",
		"/":                 "/",
		"jobs/$1,2;3~4@5:6": "jobs/=241=2C2=3B3=7E4=405=3A6",
	} {
		if got := encode(key); got != want {
			t.Errorf("%q is written as %q, want %q", key, got, want)
		}
	}
	for _, foreign := range []string{"", "a.b", "=", "a=", "=2", "=2e", "=GG", "=41", "_kv", "=00", "=FF", strings.Repeat("x", store.MaxKey+1)} {
		if key, err := decode(foreign); err == nil {
			t.Errorf("%q was read as %q", foreign, key)
		}
	}
}

func FuzzEncode(f *testing.F) {
	for _, key := range []string{"a", "_", "=", "=41", ".", "日本", "a/b", strings.Repeat("é", store.MaxKey/2)} {
		f.Add(key)
	}
	allowed := regexp.MustCompile(`^[-/_=a-zA-Z0-9]+$`)
	f.Fuzz(func(t *testing.T, key string) {
		if driver.CheckKey(key) != nil {
			if got, err := decode(key); err == nil && driver.CheckKey(got) != nil {
				t.Errorf("%q was read as %q", key, got)
			}
			return
		}
		encoded := encode(key)
		if !allowed.MatchString(encoded) || strings.HasPrefix(encoded, "_") {
			t.Errorf("%q is written as %q, which a bucket doesn't take", key, encoded)
		}
		if got, err := decode(encoded); err != nil || got != key {
			t.Errorf("%q was written as %q and read as %q, %v", key, encoded, got, err)
		}
	})
}
