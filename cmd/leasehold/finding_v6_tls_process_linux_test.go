package main

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/certtest"
)

// A client's certificate names its caller when TLS has verified it: one of another authority, or one that is over, gets no answer at all.
func TestFinding_V6_CertificatesNameCallersOverTLS(t *testing.T) {
	p := newPlace(t)
	ca, other := certtest.New(t), certtest.New(t)
	cert, key := certtest.Save(t, ca.Sign(t, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}))
	authority, _ := certtest.Save(t, tls.Certificate{Certificate: [][]byte{ca.Cert.Raw}, PrivateKey: ca.Key})
	const spiffe = "spiffe://example.org/ns/prod/sa/web"
	policy, audit := filepath.Join(t.TempDir(), "policy.yaml"), filepath.Join(t.TempDir(), "audit")
	text := "callers:\n- {name: pod, certificates: ['" + spiffe + "'], allow: [{actions: [acquire], names: ['web/*']}]}\n" +
		"- {name: ops, certificates: [ops.example.org], allow: [{actions: ['*'], names: ['*']}]}\n"
	if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := p.start("serve", "--listen", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key, "--client-ca", authority, "--policy", policy, "--audit", audit)
	var site string
	eventually(t, "it listens", func() bool {
		_, after, ok := strings.Cut(s.stderr.String(), " on https://")
		site, _, _ = strings.Cut(after, "\n")
		return ok && strings.Contains(after, "\n")
	})
	uri, err := url.Parse(spiffe)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca.Cert)
	client := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	pod := func() *x509.Certificate { return &x509.Certificate{URIs: []*url.URL{uri}, ExtKeyUsage: client} }
	over := pod()
	over.NotBefore, over.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
	early := pod()
	early.NotBefore, early.NotAfter = time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
	server := pod()
	server.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, c := range []struct {
		what, name, caller, outcome string
		cert                        *tls.Certificate
		status                      int // 0 if the handshake fails
	}{
		{"by a URI", "web/1", "pod", "ok", new(ca.Sign(t, pod())), http.StatusCreated},
		{"by a URI, what it may not", "db/1", "pod", "forbidden", new(ca.Sign(t, pod())), http.StatusForbidden},
		{"by a DNS name", "db/2", "ops", "ok", new(ca.Sign(t, &x509.Certificate{DNSNames: []string{"ops.example.org"}, ExtKeyUsage: client})), http.StatusCreated},
		{"by a name that isn't known", "web/2", "", "unauthenticated", new(ca.Sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "pod"}, ExtKeyUsage: client})), http.StatusUnauthorized},
		{"without a certificate", "web/3", "", "unauthenticated", nil, http.StatusUnauthorized},
		{"of another authority", "web/4", "", "", new(other.Sign(t, pod())), 0},
		{"signed by itself", "web/5", "", "", new(certtest.Authority{}.Sign(t, pod())), 0},
		{"over", "web/6", "", "", new(ca.Sign(t, over)), 0},
		{"not good yet", "web/7", "", "", new(ca.Sign(t, early)), 0},
		{"for servers", "web/8", "", "", new(ca.Sign(t, server)), 0},
	} {
		config := &tls.Config{RootCAs: roots}
		if c.cert != nil { // whichever authorities the server names: a client that attacks shows what it has
			config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.cert, nil }
		}
		transport := &http.Transport{TLSClientConfig: config}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+strings.TrimSpace(site)+"/v1/leases/"+url.PathEscape(c.name), strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := (&http.Client{Transport: transport}).Do(req)
		if c.status == 0 {
			if err == nil {
				t.Errorf("%s: %v, %v; want the handshake to fail", c.what, resp, err)
			}
		} else if err != nil {
			t.Errorf("%s: %v", c.what, err)
		} else if body, _ := io.ReadAll(resp.Body); resp.StatusCode != c.status {
			t.Errorf("%s: %d %s", c.what, resp.StatusCode, body)
		}
		if resp != nil {
			_ = resp.Body.Close()
		}
		transport.CloseIdleConnections()
		lines, err := os.ReadFile(audit)
		if err != nil {
			t.Fatal(err)
		}
		told := `"op":"acquire","name":"` + c.name + `"`
		line := ""
		for l := range strings.Lines(string(lines)) {
			if strings.Contains(l, told) {
				line = l
			}
		}
		if c.status == 0 && line != "" || c.status != 0 && (!strings.Contains(line, `"outcome":"`+c.outcome+`"`) || c.caller != "" && !strings.Contains(line, `"caller":"`+c.caller+`"`)) {
			t.Errorf("%s: the audit has %s", c.what, line)
		}
	}
}
