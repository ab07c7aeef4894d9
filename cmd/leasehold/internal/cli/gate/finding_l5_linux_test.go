package gate

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leasehold/leasehold/cmd/leasehold/internal/certtest"
)

// The file of --upstream-ca is replaced under a gate: the next connection believes the authority that is in it then, and no other, and only
// a certificate for the program's name, or address. One that is wrong doesn't count.
func TestFinding_L5_TheAuthoritiesOfAGatesProgram(t *testing.T) {
	before, after := certtest.New(t), certtest.New(t)
	file, _ := certtest.Save(t, tls.Certificate{Certificate: [][]byte{before.Cert.Raw}, PrivateKey: before.Key})
	var shown atomic.Pointer[tls.Certificate]
	program := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	program.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*shown.Load()}}, nil
	}}
	program.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo) // of those who don't believe it
	program.StartTLS()
	defer program.Close()
	at, err := url.Parse(program.URL)
	if err != nil {
		t.Fatal(err)
	}
	shows := func(by certtest.Authority, what x509.Certificate) {
		t.Helper()
		shown.Store(new(by.Sign(t, &what)))
	}
	var log bytes.Buffer
	client := func(name string) *http.Transport {
		t.Helper()
		config, err := gateOptions{upstreamCA: file, upstreamName: name}.upstreamTLS(slog.New(slog.NewTextHandler(&log, nil)), at.Hostname())
		if err != nil {
			t.Fatal(err)
		}
		return &http.Transport{TLSClientConfig: config.Clone(), DisableKeepAlives: true, ForceAttemptHTTP2: true}
	}
	byAddress, byName := client(""), client("ledger")
	wants := func(what string, c *http.Transport, refused string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, program.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.RoundTrip(r)
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		if (err != nil) != (refused != "") || err != nil && !strings.Contains(err.Error(), refused) {
			t.Errorf("%s: %v, want %q", what, err, refused)
		}
	}
	address, named := x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, x509.Certificate{DNSNames: []string{"ledger"}}
	const unknown = "unknown authority"
	shows(before, address)
	wants("by address", byAddress, "")
	wants("for another name", byName, "wanted to match ledger")
	shows(after, address)
	wants("of an authority that isn't in the file", byAddress, unknown)
	replace := func(text []byte) {
		t.Helper()
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		soon := time.Now().Add(time.Hour) // newer than the one before, whatever the file system's resolution
		if err := os.Chtimes(file, soon, soon); err != nil {
			t.Fatal(err)
		}
	}
	other, _ := certtest.Save(t, tls.Certificate{Certificate: [][]byte{after.Cert.Raw}, PrivateKey: after.Key})
	text, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	replace(text)
	wants("once its authority is in the file", byAddress, "")
	shows(before, address)
	wants("of the authority that was in the file", byAddress, unknown)
	shows(after, named)
	wants("by name", byName, "")
	wants("for a name instead of the address", byAddress, "doesn't contain any IP SANs")
	shows(after, x509.Certificate{DNSNames: named.DNSNames, NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(-time.Hour)})
	wants("after its time", byName, "expired")
	shows(after, x509.Certificate{DNSNames: named.DNSNames, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	wants("of a client", byName, "key usage")
	replace([]byte("none"))
	shows(after, named)
	wants("while there is none in the file", byName, "")
	if !strings.Contains(log.String(), "no certificate in it") {
		t.Errorf("the log doesn't say what is wrong: %s", &log)
	}
}
