package issuer

import (
	"context"
	"fmt"
	"net/url"
	"slices"
)

// Endpoints are where people log in, as the issuer's discovery document says.
type Endpoints struct {
	Authorization, Token string   // URLs
	Methods              []string // of PKCE that the issuer says it knows; none if it doesn't say
}

// Endpoints returns where people log in. With wait, it blocks while the issuer is asked that has
// not been asked yet, for [FetchLimit] at most; otherwise it only has the issuer asked. It
// remembers the answer while it knows no later one. The error matches [server.ErrAuthUnavailable]
// when the issuer doesn't answer.
func (v *Verifier) Endpoints(ctx context.Context, wait bool) (Endpoints, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.fetched.IsZero() {
		done := v.running
		if done == nil && since(v.o.Wall(), v.tried) >= FetchEvery {
			done = v.start()
		}
		if wait && done != nil {
			v.mu.Unlock()
			err := await(ctx, done)
			v.mu.Lock()
			if err != nil {
				return Endpoints{}, err
			}
		}
	}
	switch {
	case v.fetched.IsZero() && v.failure != nil:
		return Endpoints{}, v.unavailable("%v", v.failure)
	case v.fetched.IsZero():
		return Endpoints{}, v.unavailable("it has not answered yet")
	}
	if err := v.at.check(); err != nil {
		return Endpoints{}, fmt.Errorf("issuer %s: its discovery document: %w", v.o.URL, err)
	}
	return v.at, nil
}

// check says why a browser can't log in there.
func (e Endpoints) check() error {
	for field, text := range map[string]string{"authorization_endpoint": e.Authorization, "token_endpoint": e.Token} {
		if u, err := url.Parse(text); err != nil || u.Host == "" || !encrypted(u) {
			return fmt.Errorf("%s is %.200q: want https://, or http:// on this machine", field, text)
		}
	}
	if len(e.Methods) > 0 && !slices.Contains(e.Methods, "S256") {
		return fmt.Errorf("code_challenge_methods_supported is %.200q: want S256 among them, the method of PKCE by which the page logs in", e.Methods)
	}
	return nil
}
