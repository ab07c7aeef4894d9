package open

import (
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/internal/tlsfiles"
)

// paramPasswordFile names a file with a password, which may be replaced while the store is open.
const paramPasswordFile = "password_file"

// present returns those of the paths that name a file.
func present(paths ...string) []string {
	var all []string
	for _, path := range paths {
		if path != "" {
			all = append(all, path)
		}
	}
	return all
}

// tlsFiles is tlsConfig for files that may be replaced: each connection takes what is in them when
// it begins. It returns nil without TLS. adapt, if set, completes what was read.
func (s server) tlsFiles(log *slog.Logger, on bool, env certificates, adapt func(*tls.Config) error) (*tlsfiles.File[tls.Config], error) {
	config, err := s.tlsConfig(on, env)
	if err != nil || config == nil {
		return nil, err
	}
	c := s.certificates(env)
	return tlsfiles.Open(log, func() (*tls.Config, error) {
		config, err := s.tlsConfig(on, env)
		if err == nil && adapt != nil {
			err = adapt(config)
		}
		return config, err
	}, present(c.ca, c.cert, c.key)...)
}

// now returns what a file holds, nil where there is no file.
func now[T any](f *tlsfiles.File[T]) *T {
	if f == nil {
		return nil
	}
	return f.Get()
}

// secretFile keeps the secret in a file, which the parameter of that name names; the space around
// it is none of it.
func secretFile(log *slog.Logger, param, path string) (*tlsfiles.File[string], error) {
	return tlsfiles.Open(log, func() (*string, error) {
		secret, err := readSecret(param, path)
		return &secret, err
	}, path)
}

func readSecret(param, path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w", param, err)
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" {
		return "", fmt.Errorf("%s=%s: it is empty: want the secret in it", param, path)
	}
	return secret, nil
}

// passwordFile keeps the password of a URL that names a file for it; nil for one that names none.
func (s server) passwordFile(log *slog.Logger) (*tlsfiles.File[string], error) {
	path := s.params[paramPasswordFile]
	if path == "" {
		return nil, nil //nolint:nilnil // no file is no password of a file
	}
	if s.password != "" {
		return nil, fmt.Errorf("a password before the host and %s: want one of them", paramPasswordFile)
	}
	return secretFile(log, paramPasswordFile, path)
}

// sender sends requests, and is made of files.
type sender struct {
	http.RoundTripper
	secure     bool   // it speaks TLS
	credential string // for "Authorization" or another header; "" without
}

// rotating sends requests by the sender that the files make now. After a refusal it looks into the
// files again, and sends once more what can be.
type rotating struct {
	file    *tlsfiles.File[sender]
	header  string // that bears the credential; "" when the sender sets it
	refusal []int
}

// RoundTrip implements [http.RoundTripper].
func (r *rotating) RoundTrip(req *http.Request) (*http.Response, error) {
	s := r.file.Get()
	resp, err := s.RoundTrip(r.signed(req, s))
	if err != nil || !slices.Contains(r.refusal, resp.StatusCode) || !r.file.Renew() || req.Body != nil && req.Body != http.NoBody && req.GetBody == nil {
		return resp, err
	}
	again := req.Clone(req.Context())
	if req.GetBody != nil {
		if again.Body, err = req.GetBody(); err != nil {
			return resp, nil //nolint:nilerr // the answer is there
		}
	}
	const most = 4 << 10 // of an answer that is read so that its connection can be used again
	_, _ = io.CopyN(io.Discard, resp.Body, most)
	_ = resp.Body.Close()
	s = r.file.Get()
	return s.RoundTrip(r.signed(again, s))
}

func (r *rotating) signed(req *http.Request, s *sender) *http.Request {
	if s.credential == "" || r.header == "" {
		return req
	}
	req = req.Clone(req.Context())
	req.Header.Set(r.header, s.credential)
	return req
}

// CloseIdleConnections closes those of the present sender.
func (r *rotating) CloseIdleConnections() { closeIdle(r.file.Get().RoundTripper) }

// senders has build make the sender from the files, now and whenever one of them has changed.
func senders(log *slog.Logger, paths []string, build func() (*sender, error)) (*tlsfiles.File[sender], error) {
	var last *sender
	return tlsfiles.Open(log, func() (*sender, error) {
		s, err := build()
		if err != nil {
			return nil, err
		}
		if last != nil {
			closeIdle(last.RoundTripper) // and those in use when they become idle
		}
		last = s
		return s, nil
	}, paths...)
}

// closeIdle closes the idle connections of the transport that is at the bottom of a chain of
// wrappers. client-go's wrappers name what they wrap by this method.
func closeIdle(t http.RoundTripper) {
	for t != nil {
		if closer, ok := t.(interface{ CloseIdleConnections() }); ok {
			closer.CloseIdleConnections()
			return
		}
		wrapper, ok := t.(interface{ WrappedRoundTripper() http.RoundTripper })
		if !ok {
			return
		}
		t = wrapper.WrappedRoundTripper()
	}
}
