package consul

import (
	"net/url"
	"path"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/hashicorp/consul/api"

	"github.com/leasehold/leasehold/store/driver"
)

func TestEncode(t *testing.T) {
	for key, want := range map[string]string{
		"billing": "billing", "team/billing": "team/billing", "a/b/c": "a/b/c", "/a": "=2Fa", "a/": "a=2F", "a//b": "a=2F=2Fb",
		"/": "=2F", ".": "=2E", "..": "=2E=2E", "...": "...", "../a": "..=2Fa", "a/../b": "a=2F..=2Fb", "a b": "a=20b", "100%": "100=25", "a=b": "a=3Db",
		"naïve 日本": "naïve=20日本",
	} {
		if got := encode(key); got != want {
			t.Errorf("%q: %q, want %q", key, got, want)
		}
		if got, ok := decode(want); !ok || got != key {
			t.Errorf("%q: back to %q, %v", want, got, ok)
		}
	}
	for _, name := range []string{"", "=", "=2", "=2f", "=zz", "a=41", "a//b", "a/", "/a", ".", "a/../b", "a b", "%"} {
		if key, ok := decode(name); ok && name != "" {
			t.Errorf("%q is that of %q, which is written %q", name, key, encode(key))
		}
	}
}

// TestConsulLeavesNamesAlone: what Consul's handlers do to a path changes no name, and what they refuse is in none.
func TestConsulLeavesNamesAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.StringOf(rapid.OneOf(rapid.RuneFrom([]rune("ab./% =&é🔒")), rapid.Rune())).Draw(t, "key")
		if driver.CheckKey(key) != nil {
			t.Skip()
		}
		name := DefaultPrefix + "/" + encode(key)
		if cleaned := path.Clean(name); cleaned != name {
			t.Fatalf("%q is written %q and tidied to %q", key, name, cleaned)
		}
		if plain, err := url.PathUnescape(name); err != nil || plain != name {
			t.Fatalf("%q is written %q, which has a URL escape: %q, %v", key, name, plain, err)
		}
		if strings.TrimSpace(name) != name {
			t.Fatalf("%q is written %q", key, name)
		}
		if got, ok := decode(encode(key)); !ok || got != key {
			t.Fatalf("%q is written %q and read %q, %v", key, name, got, ok)
		}
		cut := rapid.IntRange(0, len(key)).Draw(t, "cut")
		if prefix := key[:cut]; driver.CheckPrefix(prefix) == nil && !strings.HasPrefix(encode(key), common(prefix)) {
			t.Fatalf("%q begins with %q; %q doesn't with %q", key, prefix, encode(key), common(prefix))
		}
	})
}

func TestPrefixes(t *testing.T) {
	for prefix, want := range map[string]string{"leasehold": "leasehold/", "a/b/": "a/b/", "ü": "ü/"} {
		if got, err := checkPrefix(prefix); err != nil || got != want {
			t.Errorf("%q: %q, %v", prefix, got, err)
		}
	}
	for prefix, want := range map[string]string{
		"": "a folder like", "/": "a folder like", "/a": "without a slash at its beginning", "a//b": "empty parts", "a/../b": "empty parts, . and ..", ".": "a folder like",
		"a\x00": "printable", "\xff": "printable", "a b": "no space", "a%41": "no %",
	} {
		if _, err := checkPrefix(prefix); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("prefix %q: %v, want one that says %q", prefix, err, want)
		}
	}
	if _, err := New(nil, Options{}); err == nil {
		t.Error("New took no client")
	}
	client, err := api.NewClient(&api.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(client, Options{Prefix: "/x"}); err == nil {
		t.Error("New took a prefix with a slash at its beginning")
	}
}

func TestVersions(t *testing.T) {
	if n, ok := parseVersion("17"); !ok || n != 17 {
		t.Error(n, ok)
	}
	for _, text := range []string{"", "0", "00", "01", "+1", "-1", "1 ", "1.0", "x", "18446744073709551616"} {
		if n, ok := parseVersion(text); ok {
			t.Errorf("%q was read as %d", text, n)
		}
	}
}
