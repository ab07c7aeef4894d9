package issuer

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/leasehold/leasehold/clock"
)

// claims are those that decide whether a token is good at a time.
type claims struct {
	Issuer    string           `json:"iss"`
	Expires   *jwt.NumericDate `json:"exp"`
	NotBefore *jwt.NumericDate `json:"nbf"`
	Issued    *jwt.NumericDate `json:"iat"`
}

func readClaims(payload []byte) (c claims, err error) {
	err = json.Unmarshal(payload, &c)
	return c, err
}

// start has the keys fetched, unless they are just now, and returns what is closed when that has
// ended. v.mu is held.
func (v *Verifier) start() chan struct{} {
	if v.running != nil {
		return v.running
	}
	done, now := make(chan struct{}), v.o.Wall()
	v.running, v.tried = done, now
	v.own.Go(func() {
		ctx, cancel := clock.WithTimeout(v.ctx, clock.System(), FetchLimit)
		defer cancel()
		keys, at, err := v.fetch(ctx)
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.failure = err; err == nil {
			v.keys, v.at, v.fetched = keys, at, now
		}
		v.running = nil
		close(done)
	})
	return done
}

// fetch asks the issuer where its keys are, and for them, and where people log in.
func (v *Verifier) fetch(ctx context.Context) (keys []jose.JSONWebKey, at Endpoints, err error) {
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, v.client), v.o.URL)
	if err != nil {
		return nil, at, err
	}
	var described struct {
		Keys    string   `json:"jwks_uri"`
		Methods []string `json:"code_challenge_methods_supported"`
	}
	if err := provider.Claims(&described); err != nil {
		return nil, at, err
	}
	if u, err := url.Parse(described.Keys); err != nil || !encrypted(u) {
		return nil, at, fmt.Errorf("its jwks_uri is %q: want https://, or http:// on this machine", described.Keys)
	}
	pages := provider.Endpoint()
	at = Endpoints{pages.AuthURL, pages.TokenURL, described.Methods}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, described.Keys, nil)
	if err != nil {
		return nil, at, err
	}
	resp, err := v.client.Do(req)
	if err != nil {
		return nil, at, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, at, fmt.Errorf("%s: %s", described.Keys, resp.Status)
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&set); err != nil {
		return nil, at, fmt.Errorf("%s: %w", described.Keys, err)
	}
	keys = usable(set.Keys)
	if len(keys) == 0 {
		return nil, at, fmt.Errorf("%s: has no key that verifies signatures", described.Keys)
	}
	return keys, at, nil
}

// usable returns the public keys that verify signatures. What isn't known of the others keeps
// nobody out.
func usable(all []json.RawMessage) (keys []jose.JSONWebKey) {
	for _, text := range all {
		var k jose.JSONWebKey
		if k.UnmarshalJSON(text) != nil || k.Use != "" && k.Use != "sig" {
			continue
		}
		switch k.Key.(type) {
		case *rsa.PublicKey, *ecdsa.PublicKey, ed25519.PublicKey:
			keys = append(keys, k)
		}
	}
	return keys
}

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 1 << 20

// newClient returns a client that trusts the authorities in a file, or the system's, and isn't led
// away from TLS.
func newClient(ca string) (*http.Client, error) {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConns: 2, IdleConnTimeout: FetchLimit,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
	}
	if ca != "" {
		text, err := os.ReadFile(ca)
		if err != nil {
			return nil, err
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s: want certificates in PEM", ca)
		}
		transport.TLSClientConfig.RootCAs = roots
	}
	return &http.Client{Transport: bounded{transport}, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if !encrypted(req.URL) || len(via) >= 3 {
			return errors.New("it leads elsewhere: want https://, and at most 3 steps")
		}
		return nil
	}}, nil
}

// bounded has answers end after maxAnswer.
type bounded struct{ *http.Transport }

// RoundTrip implements [http.RoundTripper].
func (b bounded) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := b.Transport.RoundTrip(req)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxAnswer), resp.Body}
	}
	return resp, err
}
