package policy

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leasehold/leasehold/server"
)

func sum(token string) string {
	s := sha256.Sum256([]byte(token))
	return hex.EncodeToString(s[:])
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestWhoMayWhat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy.yaml")
	write(t, path, `
callers:
  - name: ci
    token_sha256: [`+sum("ci-token")+`]
    allow:
      - {actions: [read, acquire], names: ["ci/*", nightly]}
  - name: ops
    certificates: [ops.example.com]
    allow:
      - {actions: ["*"], names: ["*"]}
anonymous:
  - {actions: [read], names: ["public/*"]}
`)
	p, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(header, cn string) (server.Caller, error) {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if header != "" {
			r.Header.Set("Authorization", header)
		}
		if cn != "" {
			r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{Subject: pkix.Name{CommonName: cn}}}}}
		}
		return p.Authenticate(r)
	}
	for _, c := range []struct {
		header, cn, who string
		action          server.Action
		name            string
		may             bool
	}{
		{"Bearer ci-token", "", "ci", server.Acquire, "ci/build", true},
		{"Bearer ci-token", "", "ci", server.Acquire, "nightly", true},
		{"Bearer ci-token", "", "ci", server.Acquire, "nightly2", false},
		{"Bearer ci-token", "", "ci", server.Break, "ci/build", false},
		{"Bearer ci-token", "", "ci", server.Read, "ci/*", true},
		{"Bearer ci-token", "", "ci", server.Read, "ci*", false},
		{"Bearer ci-token", "", "ci", server.Read, "*", false},
		{"Bearer ci-token", "ops.example.com", "ci", server.Break, "x", false}, // the token decides
		{"", "ops.example.com", "ops", server.Break, "x", true},
		{"", "ops.example.com", "ops", server.Read, "*", true},
		{"", "other.example.com", "", server.Read, "public/x", true},
		{"", "", "", server.Read, "public/x", true},
		{"", "", "", server.Acquire, "public/x", false},
		{"", "", "", server.Read, "*", false},
	} {
		caller, err := ask(c.header, c.cn)
		if err != nil {
			t.Errorf("%+v: %v", c, err)
			continue
		}
		if caller.Name() != c.who || caller.May(c.action, c.name) != c.may {
			t.Errorf("%+v: it is %q, and may: %v", c, caller.Name(), caller.May(c.action, c.name))
		}
	}
	for _, header := range []string{"Bearer wrong", "Basic Y2k6eA==", "Bearer "} {
		if caller, err := ask(header, "ops.example.com"); err == nil {
			t.Errorf("%s: taken for %s", header, caller.Name())
		}
	}
	// An error keeps the old one; what is mended counts at once.
	write(t, path, "callers: [{name: ci}]")
	if err := p.Reload(); err == nil {
		t.Error("a caller that can't be known was read")
	}
	if _, err := ask("Bearer ci-token", ""); err != nil {
		t.Errorf("after an error: %v", err)
	}
	write(t, path, "callers: [{name: ci, token_sha256: ["+sum("new")+"]}]")
	if err := p.Reload(); err != nil {
		t.Fatal(err)
	}
	if _, err := ask("Bearer ci-token", ""); err == nil {
		t.Error("a token that is gone is taken")
	}
	if _, err := ask("", ""); err == nil {
		t.Error("a stranger is taken")
	}
}

// What whoami says that a caller may do is what it may do, and no name stands in it twice.
func TestOnWhichNames(t *testing.T) {
	r, err := parsed(`
callers:
  - name: ci
    token_sha256: [` + sum("ci-token") + `]
    allow:
      - {actions: [read, acquire], names: ["ci/*", nightly, ci/build]}
      - {actions: [read], names: ["deploy/*", nightly, "ci/nested/*"]}
      - {actions: ["*"], names: [mine]}
`)
	if err != nil {
		t.Fatal(err)
	}
	for action, want := range map[server.Action][]string{
		server.Read:    {"ci/*", "deploy/*", "mine", "nightly"},
		server.Acquire: {"ci/*", "mine", "nightly"},
		server.Break:   {"mine"},
	} {
		got := r.callers[0].Names(action)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", action, got, want)
		}
		for _, name := range got {
			if !r.callers[0].May(action, name) {
				t.Errorf("%s: it may not: %s", action, name)
			}
		}
	}
}

func parsed(text string) (*rules, error) {
	f, err := read([]byte(text))
	if err != nil {
		return nil, err
	}
	return f.rules()
}

func TestErrorsSayWhatIsWrong(t *testing.T) {
	for text, says := range map[string]string{
		"":                     "nobody may do anything",
		"callers: [{}]":        "caller 1 has no name",
		"callers: [{name: a}]": "caller a: want token_sha256 or certificates",
		"callers: [{name: a, token_sha256: [x]}]":                                             "sha256sum",
		"callers: [{name: a, tokens: [x]}]":                                                   "tokens not found",
		"callers: [{name: a, certificates: [x]}, {name: b, certificates: [x]}]":               "caller b: certificates",
		"callers: [{name: a, certificates: [x], allow: [{names: [x]}]}]":                      "want actions and names",
		"callers: [{name: a, certificates: [x], allow: [{actions: [x], names: [x]}]}]":        `actions "x": want *, read`,
		"callers: [{name: a, certificates: [x], allow: [{actions: [read], names: ['a*b']}]}]": "one * behind it",
		"anonymous: [{actions: [read], names: ['']}]":                                         "anonymous: names",
	} {
		if _, err := parsed(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want it to say %q", text, err, says)
		}
	}
	two := "callers: [{name: a, token_sha256: [" + sum("x") + "]}, {name: b, token_sha256: [" + sum("x") + "]}]"
	if _, err := parsed(two); err == nil || !strings.Contains(err.Error(), "caller a has that token") {
		t.Errorf("%v", err)
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("no file, no error")
	}
}
