package kubernetes

import (
	"crypto/sha256"
	"encoding/hex"

	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/leasehold/leasehold/store/driver"
)

// Kubernetes takes RFC 1123 subdomains as names of objects: lower case letters, digits, '-' and
// '.', at most 253 bytes. A key that is one keeps its name, so that "my-controller" is the Lease of
// that name, whoever else uses it. In any other key each byte that doesn't fit is written as "--"
// and two hexadecimal digits: "shard/17" is shard--2f17. Since a name begins with a letter or
// digit, a key whose first byte doesn't fit gets a '0' in front: "/a" is 0--2fa. What is too long
// then is cut and gets a hash.
const (
	escape   = "--"
	leader   = "0"
	hashMark = "--x"                    // no escape: x is no hexadecimal digit
	hashSize = len(hashMark) + 2*hashed // of what follows the cut
	hashed   = 20                       // bytes of the hash
)

// objectName returns the name of the Lease that keeps key. No two keys have one name, as long as
// SHA-256 is good.
func objectName(key string) string {
	if plain(key) {
		return key
	}
	name := key
	if !isSubdomain(key) || !looksHashed(key) {
		name = escapeKey(key)
	}
	if looksHashed(name) || len(name) > validation.DNS1123SubdomainMaxLength {
		return cut(name, validation.DNS1123SubdomainMaxLength-hashSize) + hashOf(key)
	}
	return name
}

// plain reports whether key is its own name: Kubernetes takes it, and no other key is written like
// that.
func plain(key string) bool {
	if !isSubdomain(key) || looksHashed(key) {
		return false
	}
	_, other := unescape(key)
	return !other
}

// keyOfName is the opposite of objectName. It reports false when the name was cut, so that the key
// has to be told, or is none that objectName would return.
func keyOfName(name string) (string, bool) {
	if looksHashed(name) {
		return "", false
	}
	if key, ok := unescape(name); ok {
		return key, true
	}
	return name, plain(name)
}

// escapeKey writes key in the characters of a subdomain.
func escapeKey(key string) string {
	var b strings.Builder
	for i := range len(key) {
		c := key[i]
		switch {
		case i == 0 && c == leader[0] && len(key) > 1 && !literal(key, 1):
			fmt.Fprintf(&b, leader+escape+"%02x", c) // it would be taken for a leader
		case literal(key, i):
			b.WriteByte(c)
		case i == 0:
			fmt.Fprintf(&b, leader+escape+"%02x", c)
		default:
			fmt.Fprintf(&b, escape+"%02x", c)
		}
	}
	return b.String()
}

// literal reports whether the byte at i stands for itself: a letter or digit, or a dash or dot
// between two of those.
func literal(key string, i int) bool {
	if alphanumeric(key[i]) {
		return true
	}
	return (key[i] == '-' || key[i] == '.') && i > 0 && i < len(key)-1 && alphanumeric(key[i-1]) && alphanumeric(key[i+1])
}

func alphanumeric(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

// unescape returns the key that is written as name with escapes, and false if there is none.
func unescape(name string) (string, bool) {
	text := name
	if strings.HasPrefix(text, leader+escape) {
		text = text[len(leader):]
	}
	parts := strings.Split(text, escape)
	key := []byte(parts[0])
	for _, part := range parts[1:] {
		if len(part) < 2 {
			return "", false
		}
		c, err := hex.DecodeString(part[:2])
		if err != nil {
			return "", false
		}
		key = append(append(key, c...), part[2:]...)
	}
	ok := len(parts) > 1 && driver.CheckKey(string(key)) == nil && escapeKey(string(key)) == name && !plain(string(key))
	return string(key), ok
}

func isSubdomain(s string) bool { return len(validation.IsDNS1123Subdomain(s)) == 0 }

// cut returns the first n bytes of a name at most, without what must not stand before a hash.
func cut(name string, n int) string {
	return strings.TrimRight(name[:min(n, len(name))], "-.")
}

func hashOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hashMark + hex.EncodeToString(sum[:hashed])
}

func looksHashed(name string) bool {
	if len(name) <= hashSize {
		return false
	}
	tail, ok := strings.CutPrefix(name[len(name)-hashSize:], hashMark)
	return ok && strings.Trim(tail, "0123456789abcdef") == ""
}
