package kubernetes

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/leasehold/leasehold/store/driver"
)

func TestObjectName(t *testing.T) {
	for key, want := range map[string]string{
		"billing":                 "billing",
		"my-controller.example.c": "my-controller.example.c",
		"0":                       "0",
		"cert--manager":           "cert--manager",
		"a--b":                    "a--b",
		"shard/17":                "shard--2f17",
		"Billing":                 "0--42illing",
		"a b":                     "a--20b",
		"/":                       "0--2f",
		"0/":                      "0--30--2f",
		"00/":                     "00--2f",
		"x/":                      "x--2f",
		"a..b":                    "a--2e--2eb",
		"a-/b":                    "a--2d--2fb",
		"-a":                      "0--2da",
		"é":                       "0--c3--a9",
		"shard--2f17":             "shard--2d--2d2f17",
		"a--be":                   "a--be", // would be no UTF-8
		"a--2dev":                 "a--2dev",
		"a--2d--2db":              "a--2d--2db", // a--b is plain
	} {
		got := objectName(key)
		if got != want {
			t.Errorf("objectName(%q) = %q, want %q", key, got, want)
		}
		if back, ok := keyOfName(got); !ok || back != key {
			t.Errorf("keyOfName(%q) = %q, %v, want %q", got, back, ok, key)
		}
	}
}

func TestObjectNameOfLongKeys(t *testing.T) {
	long := strings.Repeat("x", 253)
	names := map[string]string{}
	for _, key := range []string{
		long, long + "x", long + "xx", long[1:] + "/", strings.Repeat("/", 255), strings.Repeat("日", 85), strings.Repeat("a.", 127),
		strings.Repeat("-", 255),
	} {
		name := objectName(key)
		if !isSubdomain(name) {
			t.Errorf("objectName(%.20q…) = %q: Kubernetes refuses it", key, name)
		}
		if other, taken := names[name]; taken {
			t.Errorf("%q and %q have one name", key, other)
		}
		names[name] = key
		if key == long {
			if name != long {
				t.Errorf("a key of 253 bytes became %q", name)
			}
			continue
		}
		if !strings.HasPrefix(name, escapeKey(key)[:100]) {
			t.Errorf("objectName(%.20q…) = %q: nobody can read that", key, name)
		}
		if got, ok := keyOfName(name); ok {
			t.Errorf("keyOfName(%q) = %q: that name doesn't tell", name, got)
		}
	}
	// The name of one long key, taken as a key, is another key, with a name of its own.
	hashed := objectName(long + "x")
	if again := objectName(hashed); again == hashed || !isSubdomain(again) {
		t.Errorf("%q is the name of two keys", hashed)
	}
}

// Every key has a name that Kubernetes takes, and no other key has it.
func TestObjectNamesAreDistinct(t *testing.T) {
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{"0", "a", "-", "--", ".", "/", "2f", "2d", "--2f", "--30", "x", "--x", "é", "A", " "}),
		rapid.StringN(0, 3, -1),
	)
	keys := rapid.Map(rapid.SliceOfN(piece, 1, 8), func(parts []string) string { return strings.Join(parts, "") })
	rapid.Check(t, func(t *rapid.T) {
		key := keys.Filter(func(k string) bool { return driver.CheckKey(k) == nil }).Draw(t, "key")
		name := objectName(key)
		if !isSubdomain(name) {
			t.Fatalf("objectName(%q) = %q: Kubernetes refuses it", key, name)
		}
		if got, ok := keyOfName(name); !ok || got != key {
			t.Fatalf("keyOfName(%q) = %q, %v, want %q", name, got, ok, key)
		}
		if isSubdomain(name) && !looksHashed(name) && !plain(name) {
			if other, ok := unescape(name); !ok || other != key {
				t.Fatalf("%q is neither plain nor an escape", name)
			}
		}
		if isSubdomain(key) && !strings.Contains(key, escape) && name != key {
			t.Fatalf("objectName(%q) = %q, and Kubernetes would have taken the key", key, name)
		}
	})
}
