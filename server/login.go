package server

import (
	"net/http"
	"net/url"

	"github.com/leasehold/leasehold/internal/api"
	"github.com/leasehold/leasehold/server/web"
)

// Login is what the page needs to log a person in with an OpenID Connect issuer. Nothing of it is
// secret: GET /v1/login tells it to everybody.
type Login struct {
	Issuer   string // its URL
	ClientID string // under which the issuer knows the page, a public client
	Scopes   string // with spaces between them
	Audience string // of the request, as the parameter audience; "" for none
	Resource string // the same as the parameter resource (RFC 8707)
	Token    string // "id_token" or "access_token": which one is the bearer token
	// The issuer's endpoints, as its discovery document has them; "" while it can't be asked.
	AuthorizationEndpoint string
	TokenEndpoint         string
	Problem               string // why nobody can log in with it now; "" if people can
}

// opLogins is the operation that needs no caller: it is how people become one.
const opLogins = "list logins"

// nobody is the caller of what needs none.
type nobody struct{}

func (nobody) Name() string            { return "" }
func (nobody) May(Action, string) bool { return false }

// logins tells the page with which issuers a person can log in.
func (s *Server) logins(c *call) (any, error) {
	all := api.Logins{Logins: []api.Login{}}
	if s.opts.Logins != nil {
		for _, l := range s.opts.Logins(c.r.Context(), true) {
			all.Logins = append(all.Logins, api.Login(l))
		}
	}
	return all, nil
}

// servePage serves the page, which may exchange codes at the issuers' token endpoints. An issuer
// that isn't known yet is waited for only where it has sent a browser back: the page has to be
// there while an issuer is down.
func (s *Server) servePage(w http.ResponseWriter, r *http.Request) {
	var origins []string
	if s.opts.Logins != nil && r.URL.Path == "/" {
		for _, l := range s.opts.Logins(r.Context(), r.URL.Query().Has("state")) {
			if u, err := url.Parse(l.TokenEndpoint); err == nil && u.Host != "" {
				origins = append(origins, u.Scheme+"://"+u.Host)
			}
		}
	}
	web.Serve(w, r, origins)
}
