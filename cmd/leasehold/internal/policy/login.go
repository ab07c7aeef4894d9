package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/leasehold/leasehold/server"
)

// login is how people log in with an issuer on the page; zero if they can't. It is comparable, as
// [trusted] is.
type login struct {
	ClientID string `yaml:"client_id"`
	Scopes   string `yaml:"scopes"`   // with spaces between them: openid by default
	Token    string `yaml:"token"`    // id_token by default, or access_token
	Audience string `yaml:"audience"` // the parameter of the request: none by default
	Resource string `yaml:"resource"` // the same as RFC 8707 has it: none by default
}

// The tokens of an issuer that may be a bearer token.
const (
	idToken     = "id_token"
	accessToken = "access_token"
)

// check says what is wrong with the login of an issuer whose tokens are for that audience.
func (l login) check(audience string) error {
	scopes := strings.Fields(l.Scopes)
	switch token := cmp.Or(l.Token, idToken); {
	case l == login{}:
		return nil
	case l.ClientID == "":
		return errors.New("client_id: want the ID under which the page is registered at the issuer, as a public client")
	case l.Scopes != "" && !slices.Contains(scopes, "openid"):
		return fmt.Errorf("scopes %q: want openid among them, with spaces between scopes: without it the issuer returns no id_token, which proves that an answer is to this login", l.Scopes)
	case token != idToken && token != accessToken:
		return fmt.Errorf("token %q: want %s or %s", l.Token, idToken, accessToken)
	case token == idToken && l.ClientID != audience:
		return fmt.Errorf("client_id %q: want the issuer's audience, %q, since an id_token is for its client; or token: %s, if the issuer's access tokens are JWTs for that audience",
			l.ClientID, audience, accessToken)
	case token == idToken && l.Audience+l.Resource != "":
		return fmt.Errorf("audience %q, resource %q: they say what an access token is for: want none with token: %s, or token: %s", l.Audience, l.Resource, idToken, accessToken)
	}
	if u, err := url.Parse(l.Resource); l.Resource != "" && (err != nil || !u.IsAbs() || u.Fragment != "") {
		return fmt.Errorf("resource %q: want an absolute URI without a fragment", l.Resource)
	}
	return nil
}

// Logins is [server.Options.Logins].
func (p *Policy) Logins(ctx context.Context, wait bool) (all []server.Login) {
	p.follow()
	w := p.now.Load().trust
	for _, t := range w.logins { // at once, not one after the other
		if wait {
			_, _ = w.issuers[t].Endpoints(ctx, false) // the error comes below
		}
	}
	for _, t := range w.logins {
		l := server.Login{
			Issuer: t.URL, ClientID: t.Login.ClientID, Scopes: cmp.Or(strings.Join(strings.Fields(t.Login.Scopes), " "), "openid"),
			Token: cmp.Or(t.Login.Token, idToken), Audience: t.Login.Audience, Resource: t.Login.Resource,
		}
		at, err := w.issuers[t].Endpoints(ctx, wait)
		switch {
		case errors.Is(err, server.ErrAuthUnavailable): // why, doctor says: everybody may read this
			l.Problem = "the server gets no answer from " + t.URL
		case err != nil:
			l.Problem = err.Error()
		}
		l.AuthorizationEndpoint, l.TokenEndpoint = at.Authorization, at.Token
		all = append(all, l)
	}
	return all
}
