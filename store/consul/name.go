package consul

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

var errForeignName = errors.New("no record has this key: something else wrote it")

// ordinary reports whether a part of a path stays one when the path is tidied.
func ordinary(part string) bool { return part != "" && part != "." && part != ".." }

// encode returns what Consul's key of a record has after the prefix. Consul refuses or tidies away
// some paths, and undoes URL escapes to see whether one is hidden in them: hence an escape of our
// own.
func encode(key string) string {
	parts := strings.Split(key, "/")
	var b strings.Builder
	for i, part := range parts {
		if i > 0 {
			if ordinary(parts[i-1]) && ordinary(part) {
				b.WriteByte('/')
			} else {
				b.WriteString("=2F")
			}
		}
		for _, c := range []byte(part) {
			if c == '=' || c == '%' || c == ' ' || (len(parts) == 1 && !ordinary(part)) {
				fmt.Fprintf(&b, "=%02X", c)
			} else {
				b.WriteByte(c)
			}
		}
	}
	return b.String()
}

// decode undoes encode. It reports false for what encode doesn't return.
func decode(name string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(name); i++ {
		if name[i] != '=' {
			b.WriteByte(name[i])
			continue
		}
		if i+3 > len(name) {
			return "", false
		}
		c, err := hex.DecodeString(name[i+1 : i+3])
		if err != nil {
			return "", false
		}
		b.Write(c)
		i += 2
	}
	key := b.String()
	return key, encode(key) == name
}

// common returns what the encoded form of every key with that prefix begins with: as much as is
// certain whatever follows.
func common(prefix string) string {
	for {
		i := strings.LastIndexByte(prefix, '/')
		if ordinary(prefix[i+1:]) {
			return encode(prefix)
		}
		if i < 0 {
			return ""
		}
		prefix = prefix[:i]
	}
}

// checkPrefix returns the prefix with a slash at its end, or what is wrong with it.
func checkPrefix(prefix string) (string, error) {
	bad := func(want string) (string, error) { return "", fmt.Errorf("consul: prefix %q: want %s", prefix, want) }
	folder := strings.TrimSuffix(prefix, "/")
	for part := range strings.SplitSeq(folder, "/") {
		if !ordinary(part) {
			return bad("a folder like leasehold or infra/leases, without a slash at its beginning, empty parts, . and ..")
		}
	}
	if !utf8.ValidString(folder) || strings.ContainsFunc(folder, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return bad("printable characters only")
	}
	if strings.ContainsAny(folder, "% ") {
		return bad("no % and no space, which Consul may refuse")
	}
	return folder + "/", nil
}
