package servers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certify makes a CA, a certificate for the server and one for a client. Their files are in Extra:
// "ca", "cert" and "key" for clients, "server-cert" and "server-key" for the server.
func (s *Server) certify() error {
	ca, err := newAuthority()
	if err != nil {
		return err
	}
	write := func(name, kind string, der []byte) error {
		file := filepath.Join(s.Dir, name+".pem")
		s.Extra[name] = file
		return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
	}
	if err := write("ca", "CERTIFICATE", ca.certificate.Raw); err != nil {
		return err
	}
	for prefix, name := range map[string]string{"server-": "localhost", "": "leasehold"} {
		cert, key, err := ca.issue(name)
		if err != nil {
			return err
		}
		if err := write(prefix+"cert", "CERTIFICATE", cert); err != nil {
			return err
		}
		if err := write(prefix+"key", "PRIVATE KEY", key); err != nil {
			return err
		}
	}
	return nil
}

// Recertify has another authority, and replaces the files of the certificates, at the same paths.
// The server shows the new one, and trusts it, when it is restarted.
func (s *Server) Recertify() {
	s.tb.Helper()
	if err := s.certify(); err != nil {
		s.tb.Fatalf("%s: %v", s.engine.title, err)
	}
}

// authority is a certification authority that exists for one server.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// The certificates are valid whatever the clock says, for tests move it.
var validFrom, validUntil = time.Unix(0, 0), time.Date(2199, 1, 1, 0, 0, 0, 0, time.UTC)

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "leasehold test CA"},
		NotBefore: validFrom, NotAfter: validUntil,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	return &authority{certificate, key}, err
}

// issue makes a certificate that serves both ends on the loopback interface, and returns it and its
// key.
func (a *authority) issue(name string) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: validFrom, NotAfter: validUntil,
		DNSNames: []string{"localhost", "server.dc1.consul"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	cert, err = x509.CreateCertificate(rand.Reader, template, a.certificate, private.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	key, err = x509.MarshalPKCS8PrivateKey(private)
	return cert, key, err
}

// loadTLS is the configuration of a client that trusts the CA and shows the certificate, if there
// is one.
func loadTLS(ca, cert, key string) (*tls.Config, error) {
	text, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s holds no certificate", ca)
	}
	config := &tls.Config{RootCAs: roots, ServerName: "localhost"}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// TLSConfig is how a client reaches a server with TLS: it trusts its CA and shows the client's
// certificate. It ends the test when the server has none.
func (s *Server) TLSConfig() *tls.Config {
	s.tb.Helper()
	config, err := s.clientTLS()
	if err != nil || config == nil {
		s.tb.Fatalf("%s has no TLS to connect by: %v", s.engine.title, err)
	}
	return config
}
