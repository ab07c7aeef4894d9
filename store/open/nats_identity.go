//go:build !lite

package open

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"time"

	natsgo "github.com/nats-io/nats.go"

	"github.com/leasehold/leasehold/internal/tlsfiles"
)

// identity returns who connects. What the URL says beats the environment, as a whole. What is in
// files is read for each connection.
func (u natsURL) identity(log *slog.Logger, fresh *freshNkey) ([]natsgo.Option, error) {
	user, password := u.user, u.password
	creds, nkey, token, tokenFile := u.params[paramCreds], u.params[paramNkey], u.params[paramToken], u.params[paramTokenFile]
	if user+creds+nkey+token+tokenFile == "" {
		user, password = os.Getenv("NATS_USER"), os.Getenv("NATS_PASSWORD")
		creds, nkey, token = os.Getenv("NATS_CREDS"), os.Getenv("NATS_NKEY"), os.Getenv("NATS_TOKEN")
	}
	passwords, err := u.passwordFile(log)
	if err != nil {
		return nil, err
	}
	if passwords != nil && user == "" {
		return nil, fmt.Errorf("%s: the password of whom? want nats://USER@HOST, or NATS_USER", paramPasswordFile)
	}
	if user != "" && password == "" && passwords == nil { // as the nats command takes it
		user, token = "", cmp.Or(token, user)
	}
	if token != "" && tokenFile != "" {
		return nil, errors.New("token and token_file: want one of them")
	}
	var opts []natsgo.Option
	switch {
	case passwords != nil:
		opts = append(opts, natsgo.UserInfoHandler(func() (string, string) { return user, *passwords.Get() }))
	case user != "":
		opts = append(opts, natsgo.UserInfo(user, password))
	}
	if tokenFile != "" {
		tokens, err := secretFile(log, paramTokenFile, tokenFile)
		if err != nil {
			return nil, err
		}
		opts = append(opts, natsgo.TokenHandler(func() string { return *tokens.Get() }))
	} else if token != "" {
		opts = append(opts, natsgo.Token(token))
	}
	if creds != "" {
		if _, err := os.ReadFile(creds); err != nil {
			return nil, fmt.Errorf("%s: %w", paramCreds, err)
		}
		opts = append(opts, natsgo.UserCredentials(creds)) // which reads it for each connection
	}
	if nkey != "" {
		opt, err := natsgo.NkeyOptionFromSeed(nkey)
		if err != nil {
			return nil, fmt.Errorf("%s=%s: %w", paramNkey, nkey, err)
		}
		fresh.file = nkey
		opts = append(opts, opt, natsgo.SetCustomDialer(fresh))
	}
	return opts, nil
}

// freshTLS has each connection begin with the certificates that are in the files then.
func freshTLS(file *tlsfiles.File[tls.Config]) natsgo.Option {
	return func(o *natsgo.Options) error {
		o.Secure, o.TLSConfig = true, file.Get()
		if len(o.TLSConfig.Certificates) > 0 {
			o.TLSCertCB = func() (tls.Certificate, error) { return file.Get().Certificates[0], nil }
		}
		o.RootCAsCB = func() (*x509.CertPool, error) { return file.Get().RootCAs, nil }
		return nil
	}
}

// freshNkey dials for a client whose key is in a file. The client signs by what is in the file
// then, but says whose key it is as the file was when the client was made.
type freshNkey struct {
	file string
	conn atomic.Pointer[natsgo.Conn] // nil for the first connection
}

// Dial implements [natsgo.CustomDialer]. The client's lock is held.
func (n *freshNkey) Dial(network, address string) (net.Conn, error) {
	var now natsgo.Options
	opt, err := natsgo.NkeyOptionFromSeed(n.file)
	if err == nil {
		err = opt(&now)
	}
	if conn := n.conn.Load(); conn != nil && err == nil { // else it continues with the one before
		conn.Opts.Nkey = now.Nkey
	}
	const limit = 5 * time.Second
	return net.DialTimeout(network, address, limit)
}
