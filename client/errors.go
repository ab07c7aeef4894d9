package client

import "github.com/leasehold/leasehold/internal/api"

// The errors of a server's answers, to test for with [errors.Is], besides those of packages store,
// lease and election. An error with the same meaning in this process is the same error.
var (
	ErrUnauthenticated = api.ErrUnauthenticated // it wants a token, or a certificate
	ErrForbidden       = api.ErrForbidden
	// The grant or session has another secret, or none: an earlier version granted it.
	ErrSecret  = api.ErrSecret
	ErrRemoved = api.ErrRemoved // an operator took the request out of the queue
	// Another one with the same idempotency key has its place.
	ErrReplaced    = api.ErrReplaced
	ErrTooMany     = api.ErrTooMany     // of this client's, at a time
	ErrUnavailable = api.ErrUnavailable // the server is closing, or its store doesn't answer
)
