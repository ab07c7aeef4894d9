// Package tlsfiles keeps certificates, and other credentials, that stand in files as they are
// there: a file that was replaced counts for the next connection, without a restart, and one that
// is wrong does not: what was read before stays in force.
package tlsfiles

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
)

// File is something that is read from files. It is safe for concurrent use.
type File[T any] struct {
	paths []string
	read  func() (*T, error)
	log   *slog.Logger

	now  atomic.Pointer[T]
	mu   sync.Mutex
	seen string // the files as they were last read, or failed to be
	sum  string // of what was in them
}

// Open reads paths by read, which returns an error that names what is wrong.
func Open[T any](log *slog.Logger, read func() (*T, error), paths ...string) (*File[T], error) {
	f := &File[T]{paths: paths, read: read, log: log}
	return f, f.Reload()
}

// Get returns what is in the files. One that can't be read, or not yet, since another one has not
// been replaced yet, is told the log, once; what was read before is returned.
func (f *File[T]) Get() *T {
	if seen := f.look(); f.stale(seen) {
		if err := f.Reload(); err != nil {
			f.log.Warn("a file with a certificate or a secret has changed and can't be read; what it held before stays in force", "error", err)
		}
	}
	return f.now.Load()
}

func (f *File[T]) stale(seen string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return seen != f.seen
}

// Reload reads the files whether they have changed or not. After an error what was read before
// stays in force.
func (f *File[T]) Reload() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reload()
}

// Renew reads the files and reports whether there was anything else in them than when they were
// last read. It is for a credential that was refused. Files that can't be read are as if they had
// not changed.
func (f *File[T]) Renew() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.digest() != f.sum && f.reload() == nil
}

// reload reads the files. f.mu is held.
func (f *File[T]) reload() error {
	// Before they are read: what changes meanwhile is read again.
	f.seen, f.sum = f.look(), f.digest()
	v, err := f.read()
	if err != nil {
		return err
	}
	f.now.Store(v)
	return nil
}

// look returns what changes when a file does.
func (f *File[T]) look() (seen string) {
	for _, path := range f.paths {
		info, err := os.Stat(path)
		if err != nil {
			seen += err.Error()
			continue
		}
		seen += fmt.Sprintf("%d %d\n", info.ModTime().UnixNano(), info.Size())
	}
	return seen
}

// digest returns what changes with what is in the files.
func (f *File[T]) digest() string {
	sum := sha256.New()
	for _, path := range f.paths {
		text, err := os.ReadFile(path)
		_, _ = fmt.Fprintf(sum, "%d %v\n%s", len(text), err, text)
	}
	return string(sum.Sum(nil))
}

// Pair is a certificate and its key.
func Pair(log *slog.Logger, cert, key string) (*File[tls.Certificate], error) {
	return Open(log, func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(cert, key)
		return &pair, err
	}, cert, key)
}

// Server is the configuration of a server: base, with a certificate and its key, and the
// authorities that sign the certificates of clients if ca is not "". What is sent to a connection
// that is there stays as it was.
func Server(log *slog.Logger, base *tls.Config, cert, key, ca string) (*File[tls.Config], error) {
	paths := []string{cert, key}
	if ca != "" {
		paths = append(paths, ca)
	}
	return Open(log, func() (*tls.Config, error) {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert %s --tls-key %s: %w", cert, key, err)
		}
		config := base.Clone()
		config.Certificates = []tls.Certificate{pair}
		if ca == "" {
			return config, nil
		}
		if config.ClientCAs, err = Authorities(ca); err != nil {
			return nil, fmt.Errorf("--client-ca: %w", err)
		}
		// Each connection shows its certificate to those who are trusted now.
		config.SessionTicketsDisabled = true
		return config, nil
	}, paths...)
}

// Trust has a client's configuration believe a server whose certificate bears the name, or the
// address, and is signed by an authority in the PEM file ca, as that is when the connection begins.
func Trust(log *slog.Logger, config *tls.Config, ca, name string) error {
	authorities, err := Open(log, func() (*x509.CertPool, error) { return Authorities(ca) }, ca)
	if err != nil {
		return err
	}
	config.InsecureSkipVerify = true // by package tls, which knows the authorities of one time only
	config.VerifyConnection = func(c tls.ConnectionState) error {
		opts := x509.VerifyOptions{Roots: authorities.Get(), DNSName: name, Intermediates: x509.NewCertPool()}
		for _, cert := range c.PeerCertificates[1:] { // a server shows one at least
			opts.Intermediates.AddCert(cert)
		}
		if _, err := c.PeerCertificates[0].Verify(opts); err != nil {
			return &tls.CertificateVerificationError{UnverifiedCertificates: c.PeerCertificates, Err: err}
		}
		return nil
	}
	return nil
}

// Authorities reads a PEM file. The error names it.
func Authorities(path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: no certificate in it: want a PEM file", path)
	}
	return pool, nil
}
