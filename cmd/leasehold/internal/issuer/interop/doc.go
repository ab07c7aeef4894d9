// Package interop has the tests of callers that a real OpenID Connect issuer names, and of people
// who log in with it on the page, in a real browser. The issuer is that of zitadel/oidc, on the
// loopback interface. It is a module of its own, since nothing but these tests needs an issuer.
package interop
