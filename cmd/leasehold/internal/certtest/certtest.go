// Package certtest makes certificates for tests.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/leasehold/leasehold/clock"
)

// Authority is an authority that signs certificates.
type Authority struct {
	Cert *x509.Certificate
	Key  *ecdsa.PrivateKey
}

// New returns an authority.
func New(t *testing.T) Authority {
	t.Helper()
	template := &x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	var s Authority
	c := s.Sign(t, template)
	return Authority{c.Leaf, c.PrivateKey.(*ecdsa.PrivateKey)}
}

// Sign makes a certificate, which is good for an hour unless it says otherwise; without an
// authority, it signs itself.
func (s Authority) Sign(t *testing.T, template *x509.Certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(clock.System().Wall().UnixNano())
	if template.NotAfter.IsZero() {
		template.NotBefore, template.NotAfter = clock.System().Wall().Add(-time.Hour), clock.System().Wall().Add(time.Hour)
	}
	parent, by := s.Cert, s.Key
	if parent == nil {
		parent, by = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), by)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// Save writes a certificate, and its key if it has one, and returns the files.
func Save(t *testing.T, c tls.Certificate) (cert, key string) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return write("cert.pem", "CERTIFICATE", c.Certificate[0]), write("key.pem", "PRIVATE KEY", der)
}
