package policy

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/server"
)

func bearing(token string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

// A token is good until it expires.
func TestFinding_V6_TokensExpire(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy")
	const rights = "allow: [{actions: [acquire], names: ['ci/*']}]"
	write(t, path, "callers: [{name: ci, expiring_tokens: [{sha256: "+sum("old")+", expires: 2026-12-31T00:00:00Z}], token_sha256: ["+sum("own")+"], "+rights+"}]")
	p, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 12, 30, 23, 59, 59, 0, time.UTC)
	p.Wall = func() time.Time { return now }
	c, err := p.Authenticate(bearing("old"))
	if err != nil || c.Name() != "ci" {
		t.Fatalf("%v, %v", c, err)
	}
	if !c.May(server.Acquire, "") || c.May(server.Read, "") {
		t.Error("there is something that it may acquire, and nothing that it may read")
	}
	now = now.Add(time.Second)
	if _, err := p.Authenticate(bearing("old")); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Errorf("%v", err)
	}
	if _, err := p.Authenticate(bearing("own")); err != nil {
		t.Errorf("%v", err)
	}
	write(t, path, "callers: [{name: ci, expiring_tokens: [{sha256: "+sum("old")+"}], "+rights+"}]")
	if err := p.Reload(); err == nil || !strings.Contains(err.Error(), "expires") {
		t.Errorf("without expires: %v", err)
	}
}

// The file is read again when it has changed; an error is told, and keeps what was read.
func TestFinding_V6_ThePolicyIsReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy")
	of := func(tokens ...string) string {
		for i, token := range tokens {
			tokens[i] = sum(token)
		}
		return "callers: [{name: ci, token_sha256: [" + strings.Join(tokens, ", ") + "], allow: [{actions: [read], names: ['*']}]}]"
	}
	write(t, path, of("first"))
	p, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p.Wall = func() time.Time { now = now.Add(2 * time.Second); return now }
	var told []error
	p.OnReload = func(err error) { told = append(told, err) }
	if _, err := p.Authenticate(bearing("first")); err != nil || told != nil {
		t.Fatalf("%v, %v", err, told)
	}
	write(t, path, of("second", "third"))
	if _, err := p.Authenticate(bearing("second")); err != nil {
		t.Errorf("%v", err)
	}
	if _, err := p.Authenticate(bearing("first")); err == nil {
		t.Error("a token that was taken out is good")
	}
	write(t, path, "nonsense")
	if _, err := p.Authenticate(bearing("second")); err != nil || len(told) != 2 || told[0] != nil || told[1] == nil {
		t.Errorf("%v; told %v", err, told)
	}
}

// A client's certificate names its caller by a common name, or by a subject alternative name: DNS, e-mail, URI.
func TestFinding_V6_CertificateNames(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy")
	write(t, path, "callers:\n- {name: pod, certificates: ['spiffe://example.org/ns/prod/sa/web'], allow: [{actions: [read], names: ['*']}]}\n"+
		"- {name: ops, certificates: [ops@example.org], allow: [{actions: [read], names: ['*']}]}\n")
	p, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	uri, err := url.Parse("spiffe://example.org/ns/prod/sa/web")
	if err != nil {
		t.Fatal(err)
	}
	for want, cert := range map[string]*x509.Certificate{
		"pod": {URIs: []*url.URL{uri}},
		"ops": {Subject: pkix.Name{CommonName: "somebody"}, EmailAddresses: []string{"ops@example.org"}},
		"":    {Subject: pkix.Name{CommonName: "pod"}},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{cert}}}
		c, err := p.Authenticate(r)
		if (err == nil) != (want != "") || err == nil && c.Name() != want {
			t.Errorf("%+v: %v, %v", cert, c, err)
		}
	}
}
