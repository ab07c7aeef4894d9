package zookeeper

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// nodeName returns the znode name of a key, or of a prefix of keys.
func nodeName(key string) string {
	var b strings.Builder
	for i, r := range key {
		size := utf8.RuneLen(r)
		if plain(r) && key != "." && key != ".." {
			b.WriteString(key[i : i+size])
			continue
		}
		for _, c := range []byte(key[i : i+size]) {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// plain reports whether a znode name may have r, and r doesn't begin an escape. ZooKeeper refuses
// control characters, and what needs two units of UTF-16 or is beyond U+FFF0.
func plain(r rune) bool {
	return r != '/' && r != '%' && r > 0x1f && (r < 0x7f || r > 0x9f) && (r < 0xd800 || r > 0xf8ff) && r < 0xfff0
}

// keyOf returns the key whose znode name that is. It reports false for a name that no key has.
func keyOf(name string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] != '%' {
			b.WriteByte(name[i])
			continue
		}
		var c byte
		if i+3 > len(name) {
			return "", false
		}
		if _, err := fmt.Sscanf(name[i+1:i+3], "%02X", &c); err != nil {
			return "", false
		}
		b.WriteByte(c)
		i += 2
	}
	key := b.String()
	return key, nodeName(key) == name
}

var errForeignName = errors.New("no key has this znode's name: something else made it")

// checkRoot returns what is wrong with the path of a root.
func checkRoot(root string) error {
	bad := func(want string) error { return fmt.Errorf("zookeeper: root %q: want %s", root, want) }
	path, ok := strings.CutPrefix(root, "/")
	if !ok || path == "" {
		return bad("the absolute path of a znode of its own, like " + DefaultRoot)
	}
	parts := strings.Split(path, "/")
	if parts[0] == "zookeeper" {
		return bad("a path that isn't under /zookeeper, which is ZooKeeper's own")
	}
	for _, part := range parts {
		if part == "" || part == "." || part == ".." {
			return bad("a path without empty parts, . and ..")
		}
		if !utf8.ValidString(part) {
			return bad("valid UTF-8")
		}
		for _, r := range part {
			if r != '%' && !plain(r) {
				return bad(fmt.Sprintf("a path without %q, which ZooKeeper refuses", r))
			}
		}
	}
	return nil
}

// node returns the path of the znode of key.
func (s *Store) node(key string) string { return s.root + "/" + nodeName(key) }
