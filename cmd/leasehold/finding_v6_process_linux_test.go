package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An issuer that is down keeps its own callers out, with 503, and nobody else: the server says so when it starts, and in its audit log.
func TestFinding_V6_AnIssuerThatIsDownKeepsItsOwnCallersOut(t *testing.T) {
	p := newPlace(t)
	const issuer = "http://127.0.0.1:1" // where nobody listens
	sum := sha256.Sum256([]byte("static"))
	policy, audit := filepath.Join(t.TempDir(), "policy.yaml"), filepath.Join(t.TempDir(), "audit")
	text := "issuers: [{issuer: '" + issuer + "', audience: leasehold}]\ncallers:\n" +
		"- {name: ci, token_sha256: [" + hex.EncodeToString(sum[:]) + "], allow: [{actions: ['*'], names: ['*']}]}\n" +
		"- {name: people, subjects: ['" + issuer + "#*'], allow: [{actions: ['*'], names: ['*']}]}\n"
	if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := p.serve("--policy", policy, "--audit", audit, "--log-level", "debug")
	eventually(t, "it says that the issuer is down", func() bool {
		return strings.Contains(s.stderr.String(), "callers that issuer "+issuer+" names are refused until it answers")
	})
	part := base64.RawURLEncoding.EncodeToString
	token := part([]byte(`{"alg":"RS256","kid":"a"}`)) + "." + part([]byte(`{"iss":"`+issuer+`","sub":"alice"}`)) + "." + part([]byte("signature"))
	if status, body := s.ask("POST", "/v1/leases/a", "{}", token); status != 503 || !strings.Contains(body, `"code":"auth_unavailable"`) || !strings.Contains(body, issuer) {
		t.Errorf("a JWT: %d %s", status, body)
	}
	if status, body := s.ask("POST", "/v1/leases/a", "{}", "static"); status != 201 {
		t.Errorf("a token of the policy: %d %s", status, body)
	}
	if status, body := s.ask("POST", "/v1/leases/a", "{}", strings.Replace(token, part([]byte(`{"iss":"`+issuer+`"`)), part([]byte(`{"iss":"http://127.0.0.1:2"`)), 1)); status != 401 {
		t.Errorf("a JWT of another issuer: %d %s", status, body)
	}
	lines, err := os.ReadFile(audit)
	if err != nil || !strings.Contains(string(lines), `"op":"acquire","name":"a","outcome":"auth_unavailable"`) || !strings.Contains(string(lines), `"outcome":"unauthenticated"`) {
		t.Errorf("the audit log: %s %v", lines, err)
	}
	for _, secret := range []string{token, "signature", part([]byte("signature")), "static"} {
		if strings.Contains(string(lines), secret) || strings.Contains(s.stderr.String(), secret) {
			t.Errorf("%s is logged", secret)
		}
	}
}
