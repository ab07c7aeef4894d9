// Package interop has the tests of callers that a real OpenID Connect issuer names: that of
// zitadel/oidc, on the loopback interface. It is a module of its own, since nothing but these tests
// needs an issuer.
package interop
