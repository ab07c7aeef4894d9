package nats

import (
	"errors"
	"fmt"
	"strings"

	"github.com/leasehold/leasehold/store/driver"
)

const hex = "0123456789ABCDEF"

// encode returns key as the bucket keeps it: letters, digits, - _ and / as they are, every other
// byte as = and its two hex digits. A bucket's key has no other characters; a dot is one with a
// meaning, and so is _kv at the beginning.
func encode(key string) string {
	var b strings.Builder
	for i := range len(key) {
		c := key[i]
		if plain(c) && (c != '_' || i > 0) {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('=')
		b.WriteByte(hex[c>>4])
		b.WriteByte(hex[c&15])
	}
	return b.String()
}

func plain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '/'
}

// decode undoes encode. It fails for what encode doesn't write: a key that somebody else put into
// the bucket.
func decode(encoded string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(encoded); i++ {
		if encoded[i] != '=' {
			b.WriteByte(encoded[i])
			continue
		}
		if i+2 >= len(encoded) {
			return "", errors.New("an escape is cut off")
		}
		hi, lo := strings.IndexByte(hex, encoded[i+1]), strings.IndexByte(hex, encoded[i+2])
		if hi < 0 || lo < 0 {
			return "", fmt.Errorf("%q is no escape", encoded[i:i+3])
		}
		b.WriteByte(byte(hi<<4 | lo))
		i += 2
	}
	key := b.String()
	if err := driver.CheckKey(key); err != nil {
		return "", err
	}
	if encode(key) != encoded {
		return "", errors.New("not as this store writes keys")
	}
	return key, nil
}
