package client

import "github.com/leasehold/leasehold/internal/wire"

// The errors of a server's answers, to test for with [errors.Is], besides those of packages store,
// lease and election. An error with the same meaning in this process is the same error.
var (
	ErrUnauthenticated = wire.ErrUnauthenticated // it wants a token, or a certificate
	ErrForbidden       = wire.ErrForbidden
	ErrSecret          = wire.ErrSecret      // the grant or session has another secret, or none: an earlier version granted it
	ErrRemoved         = wire.ErrRemoved     // an operator took the request out of the queue
	ErrReplaced        = wire.ErrReplaced    // a later request with the same idempotency key has its place
	ErrTooMany         = wire.ErrTooMany     // of this client's, at a time
	ErrUnavailable     = wire.ErrUnavailable // the server is closing, or its store doesn't answer
)
