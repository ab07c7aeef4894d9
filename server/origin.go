package server

import (
	"net/http"

	"github.com/leasehold/leasehold/internal/wire"
)

// foreign refuses what a browser was made to send by a page of somebody else's. A browser adds its certificate to such a request, and a
// server that asks nobody who he is has nothing else to tell it by. Whoever is no browser says nothing of an origin, and is let by.
var foreign = http.NewCrossOriginProtection()

// checkOrigin returns the problem of a request that changes something and comes from another site's page.
func checkOrigin(r *http.Request) *wire.Problem {
	if err := foreign.Check(r); err != nil {
		return wire.NewProblem(wire.CodeForbidden, "%s %s: a page of another site asks for it (Origin %.80q): only this server's own page may change something; "+
			"a proxy in between has to pass the Host header on, which is %.80q here", r.Method, r.URL.EscapedPath(), r.Header.Get("Origin"), r.Host)
	}
	return nil
}
