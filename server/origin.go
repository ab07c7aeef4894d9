package server

import (
	"net"
	"net/http"
	"strings"

	"github.com/leasehold/leasehold/internal/api"
)

// foreign refuses what a browser was made to send by a page of somebody else's. A browser adds its
// certificate to such a request, and a server that asks nobody who he is has nothing else to tell
// it by. Whoever is no browser says nothing of an origin, and is let by.
var foreign = http.NewCrossOriginProtection()

// checkOrigin returns the problem of a request that a page of another site has a browser send.
func (s *Server) checkOrigin(r *http.Request) *api.Problem {
	if s.opts.LocalNames && !localName(r.Host) {
		return api.NewProblem(api.CodeForbidden, "Host %.80q: this server asks nobody who he is, so it answers to addresses and localhost only: "+
			"a page of that name could be anybody's. Ask it by its address, or start it with --policy, or with --allow-anybody", r.Host)
	}
	if err := foreign.Check(changing(r)); err != nil {
		return api.NewProblem(api.CodeForbidden, "%s %s: a page of another site asks for it (Origin %.80q): only this server's own page may change something; "+
			"a proxy in between has to pass the Host header on, which is %.80q here", r.Method, r.URL.EscapedPath(), r.Header.Get("Origin"), r.Host)
	}
	return nil
}

// changing returns a request as one that changes something, which the check of origins lets by if
// it is a GET: to make ids claims a number.
func changing(r *http.Request) *http.Request {
	if !strings.HasPrefix(r.URL.Path, "/v1/ids/") {
		return r
	}
	post := *r
	post.Method = http.MethodPost
	return &post
}

// localName reports whether the host of a request, with its port if there is one, is an address, or
// a name that no name server makes lead here.
func localName(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || net.ParseIP(strings.Trim(host, "[]")) != nil
}
