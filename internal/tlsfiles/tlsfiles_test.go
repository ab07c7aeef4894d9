package tlsfiles

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// identity makes a self-signed certificate, and returns it and its key.
func identity(t *testing.T, name string) (cert, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotAfter: time.Now().Add(time.Hour), BasicConstraintsValid: true, IsCA: true,
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
}

// folder is where the files are.
type folder struct {
	t   *testing.T
	dir string
	age time.Time
}

func (f *folder) path(name string) string { return filepath.Join(f.dir, name) }

// write replaces a file, which is newer than the one before whatever the file system's resolution.
func (f *folder) write(name string, text []byte) {
	f.t.Helper()
	if err := os.WriteFile(f.path(name), text, 0o600); err != nil {
		f.t.Fatal(err)
	}
	f.age = f.age.Add(time.Second)
	if err := os.Chtimes(f.path(name), f.age, f.age); err != nil {
		f.t.Fatal(err)
	}
}

// shake has a client with a certificate shake hands with a server, and returns which certificate the server showed.
func shake(t *testing.T, server *File[tls.Config], cert, key []byte) (shown string, err error) {
	t.Helper()
	a, b := net.Pipe()
	s := tls.Server(a, &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return server.Get(), nil }})
	done := make(chan error, 1)
	go func() {
		err := s.Handshake()
		_ = a.Close()
		done <- err
	}()
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	c := tls.Client(b, &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{pair}}) //nolint:gosec // whatever it shows
	err = c.Handshake()
	if err == nil {
		shown = c.ConnectionState().PeerCertificates[0].Subject.CommonName
	}
	_, _ = c.Read(make([]byte, 1)) // until it is told that it is refused, or that this is all
	if its := <-done; its != nil {
		err = its
	}
	_ = b.Close()
	return shown, err
}

// What was replaced counts for the next connection; what is wrong, or half there, does not, and is said once.
func TestServer(t *testing.T) {
	f := &folder{t: t, dir: t.TempDir(), age: time.Now()}
	oldCert, oldKey := identity(t, "old")
	newCert, newKey := identity(t, "new")
	f.write("cert", oldCert)
	f.write("key", oldKey)
	f.write("ca", oldCert)
	var log bytes.Buffer
	s, err := Server(slog.New(slog.NewTextHandler(&log, nil)), &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAndVerifyClientCert}, f.path("cert"), f.path("key"), f.path("ca"))
	if err != nil {
		t.Fatal(err)
	}
	wants := func(what, shown string, cert, key []byte, refused bool) {
		t.Helper()
		got, err := shake(t, s, cert, key)
		if (err != nil) != refused || err == nil && got != shown {
			t.Errorf("%s: %q, %v, want %q, refused: %v", what, got, err, shown, refused)
		}
	}
	wants("at first", "old", oldCert, oldKey, false)
	wants("a client of nobody's", "", newCert, newKey, true)

	f.write("cert", newCert) // and the key is still the old one
	wants("half replaced", "old", oldCert, oldKey, false)
	wants("half replaced", "old", oldCert, oldKey, false)
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "stays in force") {
		t.Errorf("it was not said once: %s", text)
	}
	f.write("key", newKey)
	wants("replaced", "new", oldCert, oldKey, false)

	f.write("ca", []byte("nothing"))
	wants("no authorities", "new", oldCert, oldKey, false)
	if err := s.Reload(); err == nil || !strings.Contains(err.Error(), "--client-ca: "+f.path("ca")+": no certificate in it") {
		t.Errorf("asked to read: %v", err)
	}
	f.write("ca", newCert)
	wants("other authorities", "", oldCert, oldKey, true)
	wants("other authorities", "new", newCert, newKey, false)
	if err := os.Remove(f.path("key")); err != nil {
		t.Fatal(err)
	}
	wants("without a key", "new", newCert, newKey, false)
}

func TestPair(t *testing.T) {
	f := &folder{t: t, dir: t.TempDir(), age: time.Now()}
	cert, key := identity(t, "one")
	f.write("cert", cert)
	if _, err := Pair(slog.New(slog.DiscardHandler), f.path("cert"), f.path("key")); err == nil {
		t.Error("no key, no error")
	}
	f.write("key", key)
	p, err := Pair(slog.New(slog.DiscardHandler), f.path("cert"), f.path("key"))
	if err != nil {
		t.Fatal(err)
	}
	cert, key = identity(t, "two")
	f.write("cert", cert)
	f.write("key", key)
	if got := p.Get().Leaf.Subject.CommonName; got != "two" {
		t.Errorf("it is %s", got)
	}
}
