package fence_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/fence"
)

func TestParseToken(t *testing.T) {
	for s, want := range map[string]fence.Token{
		"1": 1, "42": 42, "0042": 42, "9007199254740991": fence.MaxToken,
		"": 0, "0": 0, "-1": 0, "+1": 0, " 1": 0, "1 ": 0, "1.0": 0, "1e3": 0, "0x1": 0, "1_000": 0, "١": 0, "token": 0,
		"9007199254740992": 0, "18446744073709551615": 0, "18446744073709551616": 0, "99999999999999999999999999": 0,
	} {
		got, err := fence.ParseToken(s)
		if got != want || (err == nil) != (want != 0) {
			t.Errorf("ParseToken(%q) = %d, %v; want %d", s, got, err, want)
		}
		if err != nil && (!strings.Contains(err.Error(), `"`+s+`"`) || !strings.Contains(err.Error(), "9007199254740991")) {
			t.Errorf("ParseToken(%q): the error does not say what was given and what is wanted: %v", s, err)
		}
	}
}

func FuzzParseToken(f *testing.F) {
	for _, s := range []string{"", "0", "1", "9007199254740991", "9007199254740992", "-1", "1e3", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := fence.ParseToken(s)
		if err != nil {
			if got != 0 {
				t.Errorf("ParseToken(%q) = %d with an error", s, got)
			}
			return
		}
		if got == 0 || got > fence.MaxToken {
			t.Errorf("ParseToken(%q) = %d", s, got)
		}
		if again, err := fence.ParseToken(got.String()); err != nil || again != got {
			t.Errorf("ParseToken(%q) = %d, and its String reads back as %d, %v", s, got, again, err)
		}
	})
}

// A token of any size is read exactly by JSON parsers whose numbers are floating-point.
func TestTokenInJSON(t *testing.T) {
	b, err := json.Marshal(fence.Mark{Token: fence.MaxToken, Holder: "a"})
	if err != nil || string(b) != `{"token":9007199254740991,"holder":"a"}` {
		t.Fatalf("%s, %v", b, err)
	}
	var loose map[string]any
	if err := json.Unmarshal(b, &loose); err != nil || fence.Token(loose["token"].(float64)) != fence.MaxToken {
		t.Errorf("read as floating point: %v, %v", loose["token"], err)
	}
}

func TestAdmit(t *testing.T) {
	for _, tt := range []struct {
		name   string
		mark   fence.Mark
		holder string
		token  fence.Token
		admit  bool
		says   string // in the error
	}{
		{"the first", fence.Mark{}, "a", 1, true, ""},
		{"the first, with a late term", fence.Mark{}, "a", fence.MaxToken, true, ""},
		{"the holder again", fence.Mark{5, "a"}, "a", 5, true, ""},
		{"the next term", fence.Mark{5, "a"}, "b", 6, true, ""},
		{"a much later term", fence.Mark{5, "a"}, "b", 600, true, ""},
		{"the same holder's next term", fence.Mark{5, "a"}, "a", 6, true, ""},
		{"the term before", fence.Mark{5, "b"}, "a", 4, false, "stale fencing token 4: b has token 5"},
		{"the same holder's term before (F6)", fence.Mark{5, "a"}, "a", 3, false, "stale fencing token 3: a has token 5"},
		{"another holder of the term (F7)", fence.Mark{5, "a"}, "b", 5, false, "token 5 belongs to a: another holder presented it"},
		{"nobody, of the term", fence.Mark{5, "a"}, "", 5, false, "token 5 belongs to a"},
		{"no token", fence.Mark{5, "a"}, "a", 0, false, "no fencing token"},
		{"no token, at first", fence.Mark{}, "a", 0, false, "no fencing token"},
		{"no token and no holder, at first", fence.Mark{}, "", 0, false, "no fencing token"},
	} {
		got, err := tt.mark.Admit("billing", tt.holder, tt.token)
		if tt.admit {
			if want := (fence.Mark{Token: tt.token, Holder: tt.holder}); err != nil || got != want {
				t.Errorf("%s: %+v, %v; want %+v", tt.name, got, err, want)
			}
			continue
		}
		var stale *fence.StaleError
		if !errors.Is(err, fence.ErrStale) || !errors.As(err, &stale) || got != tt.mark {
			t.Errorf("%s: %+v, %v; want a *StaleError and the mark as it was", tt.name, got, err)
			continue
		}
		if want := (fence.StaleError{Name: "billing", Got: tt.token, Current: tt.mark.Token, Holder: tt.mark.Holder}); *stale != want {
			t.Errorf("%s: %+v, want %+v", tt.name, *stale, want)
		}
		if !strings.HasPrefix(err.Error(), "billing: ") || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: the error is %q, want it to say %q", tt.name, err, tt.says)
		}
	}
}

// Whatever requests come in whatever order, those that are admitted come in the order of their tokens, one holder a token.
func FuzzAdmit(f *testing.F) {
	f.Add([]byte{1, 0, 2, 1, 1, 0, 2, 0, 0, 0})
	f.Fuzz(func(t *testing.T, requests []byte) {
		var mark fence.Mark
		holders := map[fence.Token]byte{}
		for i := 0; i+1 < len(requests); i += 2 {
			token, holder := fence.Token(requests[i]), requests[i+1]%3
			next, err := mark.Admit("r", string('a'+rune(holder)), token)
			if err != nil {
				if next != mark {
					t.Fatalf("a refusal changed the mark from %+v to %+v", mark, next)
				}
				continue
			}
			if first, ok := holders[token]; token == 0 || token < mark.Token || (ok && first != holder) {
				t.Fatalf("admitted token %d of %d over %+v", token, holder, mark)
			}
			holders[token], mark = holder, next
		}
	})
}
