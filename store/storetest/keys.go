package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/leasehold/leasehold/store"
)

// odd are keys that some encoding, path, pattern or comparison mistakes for something else, or for
// one another.
var odd = []string{
	"a", "A", "aa", "ab", "a b", "a  b", " a", "a ", " ", "  ",
	"a/b", "/a", "a/", "/", "//", "a//b", "a/b/c", "/a/b", ".", "..", "...", "../a", "a/..", "a/../b", "./a", "a/./b", "a/.", ".a", "a.",
	"%", "%%", "%2F", "%2f", "a%2Fb", "%00", "%25", "_", "__", "a_", "a_b", "*", "**", "a*", "?", "a?b=c&d", "[a]", "[", "{a}", "^a$", "a|b", "(", "+",
	`"`, `'`, "`", `""`, `a'b`, `a"b`, `\`, `\\`, `a\b`, `\n`, `\x00`, `a\/b`, "a;b", "a--b", "$1", "${a}", "#", "a#b", "~", "~0", "~1", "@", ":", "a:b", "a:", ",", "a,b", "<a>", "&amp;", "=", "!", "-", "--a",
	"\u00e9", "e\u0301", "\u00c9", "ß", "ss", "SS", "İ", "i", "I", "ı", "\ufb01", "fi", "\u00c5", "\u212b", "\uff8a", "\u30cf", "日本語", "日", "عربي", "🔒", "🔒🔒", "👩🏽", "\uFFFD", "\U000E01EF", "a\U000E01EF", "\u0301",
	"null", "NULL", "nil", "true", "0", "00", "-1", "1", "1e3", "0x1", "key", "version", "_index", "kv", "lease", "index.html", "CON", "a.db", "ключ",
}

func init() {
	odd = append(odd, strings.Repeat("x", store.MaxKey), strings.Repeat("x", store.MaxKey-1), strings.Repeat("/", store.MaxKey), strings.Repeat("日", store.MaxKey/3))
}

// putOdd stores a record of its own under each odd key.
func putOdd(ctx context.Context, s store.Store) (map[string]store.Record, error) {
	stored := map[string]store.Record{}
	for _, key := range odd {
		rec := held(key, 1)
		rec.Data = []byte(key)
		got, err := mustPut(ctx, s, rec)
		if err != nil {
			return nil, err
		}
		stored[key] = got
	}
	return stored, nil
}

// oddKeys: keys are told apart by their bytes and nothing else, and none means anything.
func oddKeys(ctx context.Context, e *env) error {
	s, err := e.open(ctx)
	if err != nil {
		return err
	}
	stored, err := putOdd(ctx, s)
	if err != nil {
		return err
	}
	for _, rec := range stored {
		if err := mustGet(ctx, s, rec); err != nil {
			return err
		}
	}
	for rec, err := range s.List(ctx, "") {
		if err != nil {
			return err
		}
		if err := same(rec, stored[rec.Key]); err != nil {
			return fmt.Errorf("yielded by List: %w", err)
		}
	}
	// Every other one is deleted: the rest must not notice.
	for i, key := range odd {
		if i%2 == 1 {
			continue
		}
		if err := mustDelete(ctx, s, key, stored[key].Version); err != nil {
			return err
		}
		delete(stored, key)
	}
	for _, rec := range stored {
		if err := mustGet(ctx, s, rec); err != nil {
			return fmt.Errorf("after other keys were deleted: %w", err)
		}
		if got, err := store.Wait(ctx, s, rec.Key, ""); err != nil || got.Version != rec.Version {
			return fmt.Errorf("wait for %q: version %q and error %v, want version %q", rec.Key, got.Version, err, rec.Version)
		}
	}
	return errors.Join(sameKeys(ctx, s, "", stored))
}

// prefixIsLiteral: List takes a prefix for what it is: bytes, not a pattern, a folder or a word.
func prefixIsLiteral(ctx context.Context, e *env) error {
	s, err := e.open(ctx)
	if err != nil {
		return err
	}
	stored, err := putOdd(ctx, s)
	if err != nil {
		return err
	}
	for _, prefix := range append([]string{"", "x", "xx", "b", "a%", "a/b/c/", "nothing has this prefix"}, odd...) {
		want := maps.Clone(stored)
		maps.DeleteFunc(want, func(key string, _ store.Record) bool { return !strings.HasPrefix(key, prefix) })
		if err := sameKeys(ctx, s, prefix, want); err != nil {
			return err
		}
	}
	return nil
}

// sameKeys checks that List yields those keys, each once.
func sameKeys(ctx context.Context, s store.Store, prefix string, want map[string]store.Record) error {
	keys, err := keysOf(ctx, s, prefix)
	if err != nil {
		return err
	}
	for key, n := range keys {
		if _, ok := want[key]; !ok || n != 1 {
			return fmt.Errorf("list %q yielded %q %d times; it is to be yielded: %v", prefix, key, n, ok)
		}
	}
	for key := range want {
		if keys[key] == 0 {
			return fmt.Errorf("list %q did not yield %q", prefix, key)
		}
	}
	return nil
}
