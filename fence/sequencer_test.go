package fence_test

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/fence"
)

// Golden texts: they are in other programs' headers and logs.
func TestSequencerText(t *testing.T) {
	for text, want := range map[string]fence.Sequencer{
		"v1;1767226111909;billing;web-1/17/abc":     {"billing", "web-1/17/abc", 1767226111909},
		"v1;1;a%20b%2Cc%3Bd%25;%C3%A9%22":           {"a b,c;d%", "é\"", 1},
		"v1;9007199254740991;-._~/:@+=;h":           {"-._~/:@+=", "h", fence.MaxToken},
		"v1;5;" + strings.Repeat("%0A", 255) + ";h": {strings.Repeat("\n", 255), "h", 5},
	} {
		if got := want.String(); got != text {
			t.Errorf("%+v: %s, want %s", want, got, text)
		}
		if got, err := fence.ParseSequencer(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		h := http.Header{}
		h.Set(fence.Header, text)
		var b bytes.Buffer
		if err := h.Write(&b); err != nil || !strings.Contains(b.String(), fence.Header+": "+text+"\r\n") {
			t.Errorf("%s doesn't go through a header: %q, %v", text, b.String(), err)
		}
	}
}

func TestMalformedSequencers(t *testing.T) {
	for _, text := range []string{
		"", "v1", "v1;1;a", "v2;1;a;b", "v1;0;a;b", "v1;01;a;b", "v1;-1;a;b", "v1;9007199254740992;a;b", "v1;1;;b", "v1;1;a;",
		"v1;1;a b;c", "v1;1;a%2;b", "v1;1;a%2g;b", "v1;1;a%61;b", "v1;1;a%c3%a9;b", "v1;1;%FF;b", "v1;1;a;b;", "v1;1;a;b;m;n", "V1;1;a;b",
		"v1;1;" + strings.Repeat("a", 256) + ";b", "v1;1;a;" + strings.Repeat("b", 256), strings.Repeat("x", 1<<20), " v1;1;a;b", "v1;1;a;b ",
		"v1;1;a;b;signature",
	} {
		if s, err := fence.ParseSequencer(text); !errors.Is(err, fence.ErrMalformed) || s != (fence.Sequencer{}) {
			t.Errorf("%.80q: %+v, %v", text, s, err)
		} else if len(err.Error()) > 1000 {
			t.Errorf("%.80q: an error of %d bytes", text, len(err.Error()))
		}
	}
}

func keys(t *testing.T, names ...string) *fence.Keys {
	t.Helper()
	var all [][]byte
	for _, n := range names {
		all = append(all, []byte(strings.Repeat(n, fence.MinKeyBytes)))
	}
	k, err := fence.NewKeys(all...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Nobody without a key can make up a sequencer, nor change one that was signed.
func TestSignature(t *testing.T) {
	s := fence.Sequencer{Name: "billing", Holder: "web-1", Token: 7}
	signed, err := keys(t, "a").Sign(s)
	if err != nil || signed != "v1;7;billing;web-1;dZiTHgeB68aL6u5tDloMpUr14F62wjh7Mx7bfyQHx80" {
		t.Errorf("%s, %v", signed, err)
	}
	for _, k := range []*fence.Keys{keys(t, "a"), keys(t, "b", "a")} {
		if got, err := k.Verify(signed); err != nil || got != s {
			t.Errorf("%+v, %v", got, err)
		}
	}
	mac := signed[strings.LastIndex(signed, ";"):]
	for what, text := range map[string]string{
		"not signed":         s.String(),
		"another token":      "v1;8;billing;web-1" + mac,
		"another name":       "v1;7;billings;web-1" + mac,
		"another holder":     "v1;7;billing;web-2" + mac,
		"moved boundary":     "v1;7;billing;web-1;" + mac[2:],
		"another signature":  "v1;7;billing;web-1;AAAA",
		"signature with pad": signed + "=",
	} {
		if got, err := keys(t, "a").Verify(text); !errors.Is(err, fence.ErrForged) || got != (fence.Sequencer{}) {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	if _, err := keys(t, "b").Verify(signed); !errors.Is(err, fence.ErrForged) {
		t.Errorf("by another key: %v", err)
	}
	if _, err := (&fence.Keys{}).Verify(signed); !errors.Is(err, fence.ErrForged) {
		t.Errorf("without a key: %v", err)
	}
	if _, err := keys(t, "a").Verify("nonsense"); !errors.Is(err, fence.ErrMalformed) {
		t.Errorf("nonsense: %v", err)
	}
	if _, err := keys(t, "a").Sign(fence.Sequencer{Name: "x", Token: 1}); !errors.Is(err, fence.ErrMalformed) {
		t.Errorf("without a holder: %v", err)
	}
	if _, err := fence.NewKeys([]byte("short")); err == nil || !strings.Contains(err.Error(), "16") {
		t.Errorf("a short key: %v", err)
	}
	if _, err := fence.NewKeys(); err == nil {
		t.Error("no key is accepted")
	}
}

// Whatever is read is written back as the same text, and signing it can't change what it says.
func FuzzSequencer(f *testing.F) {
	f.Add("v1;1767226111909;billing;web-1/17/abc")
	f.Add("v1;1;%C3%A9;b;c")
	f.Add("v1;;;")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := fence.ParseSequencer(text)
		if err != nil {
			if !errors.Is(err, fence.ErrMalformed) {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if s.String() != text {
			t.Errorf("%q is read as %+v, whose text is %q", text, s, s.String())
		}
		k := keys(t, "a")
		signed, err := k.Sign(s)
		if got, err2 := k.Verify(signed); err != nil || err2 != nil || got != s {
			t.Errorf("%q: %v, %v, %+v", text, err, err2, got)
		}
	})
}
