package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
)

// The scheme of a bearer token has no case (RFC 9110).
func TestFinding_V2_SchemesHaveNoCase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy")
	sum := sha256.Sum256([]byte("tok"))
	write(t, path, "callers: [{name: ci, token_sha256: ["+hex.EncodeToString(sum[:])+"], allow: [{actions: [read], names: ['*']}]}]")
	p, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	for header, ok := range map[string]bool{"Bearer tok": true, "bearer tok": true, "BEARER tok": true, "bearertok": false, "Basic tok": false, "bearer": false} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Authorization", header)
		if caller, err := p.Authenticate(r); (err == nil) != ok || ok && caller.Name() != "ci" {
			t.Errorf("%s: %v, %v", header, caller, err)
		}
	}
}
