package zookeeper

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/leasehold/leasehold/store/driver"
)

func TestNodeName(t *testing.T) {
	for key, want := range map[string]string{
		"billing": "billing", "a/b": "a%2Fb", "100%": "100%25", ".": "%2E", "..": "%2E%2E", ".a": ".a", "...": "...",
		"naïve 日本": "naïve 日本", "🔒": "%F0%9F%94%92", "\uFFFD": "%EF%BF%BD",
	} {
		if got := nodeName(key); got != want {
			t.Errorf("%q: %q, want %q", key, got, want)
		}
		if got, ok := keyOf(want); !ok || got != key {
			t.Errorf("%q: back to %q, %v", want, got, ok)
		}
	}
	for _, name := range []string{"%", "%2", "%2f", "%zz", "a%41", "%+1", "% 1", "🔒", "%FF%"} {
		if key, ok := keyOf(name); ok {
			t.Errorf("%q is the name of %q, which is written %q", name, key, nodeName(key))
		}
	}
}

func TestNamesComeBackAndAreRefusedByNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.String().Draw(t, "key")
		if driver.CheckKey(key) != nil {
			t.Skip()
		}
		name := nodeName(key)
		if got, ok := keyOf(name); !ok || got != key {
			t.Fatalf("%q is written %q and read %q, %v", key, name, got, ok)
		}
		if err := checkRoot("/r/" + name); err != nil {
			t.Fatal(err)
		}
	})
}

func TestRoots(t *testing.T) {
	for _, root := range []string{"/leasehold", "/a/b", "/a b/ü", "/zookeeper2", "/a%2Fb"} {
		if err := checkRoot(root); err != nil {
			t.Error(err)
		}
	}
	for root, want := range map[string]string{
		"": "absolute path", "/": "absolute path", "a": "absolute path", "/a/": "without empty parts", "//a": "without empty parts",
		"/a/./b": "without empty parts, . and ..", "/..": "without empty parts", "/zookeeper": "ZooKeeper's own", "/zookeeper/x": "ZooKeeper's own",
		"/a\x01": "which ZooKeeper refuses", "/🔒": "which ZooKeeper refuses", "/\xff": "valid UTF-8",
	} {
		if err := checkRoot(root); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("root %q: %v, want one that says %q", root, err, want)
		}
	}
	if _, err := New(nil, Options{}); err == nil {
		t.Error("New took no connection")
	}
}

func TestVersions(t *testing.T) {
	birth := newBirth()
	if v, ok := parseVersion(birth + ".17"); !ok || v != (version{birth, 17}) {
		t.Errorf("%v, %v", v, ok)
	}
	for _, text := range []string{
		"", ".", "17", birth, birth + ".", birth + ".-1", birth + ".01", birth + ".+1", birth + ".2147483648", birth + ".1 ", birth + ".1.1",
		"a" + birth[1:] + ".1", birth[1:] + ".1", "/" + birth[1:] + ".1", birth + "A.1", "ÄÄÄÄÄÄÄÄ.1",
	} {
		if v, ok := parseVersion(text); ok {
			t.Errorf("%q was read as %v", text, v)
		}
	}
	if births := []string{newBirth(), newBirth()}; births[0] == births[1] || slices.Contains(births, birth) {
		t.Error("a birth came again")
	}
}
