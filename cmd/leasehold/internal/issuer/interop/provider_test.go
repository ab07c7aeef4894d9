package interop

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"time"

	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

const pageID = "leasehold-page"

// browser is what a provider does with browsers, as a test decides.
type browser struct {
	redirect string // registered
	nonce    string // in the place of the one that was asked for
	silent   bool   // it doesn't answer who asks for tokens
	tokens   int    // how often tokens were asked for
	// answers, if set, is where the browser is sent after the login, in the stead of the registered address with these parameters.
	answers func(url.Values) string
}

// registered is the page as a public client.
type registered struct {
	*storage.Client
	p *provider
}

func (registered) GetID() string                       { return pageID }
func (registered) ApplicationType() op.ApplicationType { return op.ApplicationTypeUserAgent }
func (registered) DevMode() bool                       { return true } // plain HTTP, on this machine
func (registered) AccessTokenType() op.AccessTokenType { return op.AccessTokenTypeJWT }
func (r registered) RedirectURIs() []string            { return []string{r.p.seen().redirect} }
func (r registered) IDTokenLifetime() (life time.Duration) {
	r.p.set(func() {
		if life = r.p.lifetime; r.p.then > 0 {
			r.p.lifetime, r.p.then = r.p.then, 0
		}
	})
	return life
}
func (registered) LoginURL(id string) string { return "/login?id=" + url.QueryEscape(id) }

func (p *provider) seen() browser {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.browser
}

// GetClientByClientID implements [op.Storage].
func (p *provider) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	if id == pageID {
		return registered{storage.NativeClient(pageID), p}, nil
	}
	return p.Storage.GetClientByClientID(ctx, id)
}

// CreateAuthRequest implements [op.Storage].
func (p *provider) CreateAuthRequest(ctx context.Context, r *oidc.AuthRequest, user string) (op.AuthRequest, error) {
	if other := p.seen().nonce; other != "" {
		r.Nonce = other
	}
	return p.Storage.CreateAuthRequest(ctx, r, user)
}

// answer serves a request. Each browser that comes to log in is the test's user, without a password.
func (p *provider) answer(w http.ResponseWriter, r *http.Request, next http.Handler) {
	b := p.seen()
	switch r.URL.Path {
	case "/login":
		id := r.URL.Query().Get("id")
		if err := p.CheckUsernamePassword("test-user@127.0.0.1", "verysecure", id); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		http.Redirect(w, r, "/authorize/callback?id="+url.QueryEscape(id), http.StatusFound)
		return
	case "/authorize/callback":
		w = diverted{w, b.answers}
	case "/oauth/token":
		p.set(func() { p.browser.tokens++ })
		if b.silent {
			panic(http.ErrAbortHandler)
		}
	}
	next.ServeHTTP(w, r)
}

// diverted sends the browser elsewhere than the provider would.
type diverted struct {
	http.ResponseWriter
	to func(url.Values) string
}

func (d diverted) WriteHeader(status int) {
	if u, err := url.Parse(d.Header().Get("Location")); err == nil && d.to != nil && u.Query().Has("state") {
		d.Header().Set("Location", d.to(maps.Clone(u.Query())))
	}
	d.ResponseWriter.WriteHeader(status)
}
