// Package server is the lock server: leases over HTTP, for scripts, configuration management, CI jobs and programs in any language.
//
// It keeps nothing that must not be lost: who holds what is in the store, so a server may be killed at any moment, and several may
// serve one store. Where the store is the embedded file, one server is all there is.
//
// # API
//
// Under /v1, JSON, described by openapi.yaml, which the server serves:
//
//	POST   /v1/leases/{name}           acquire; with "wait" in its queue
//	PUT    /v1/leases/{name}           renew
//	DELETE /v1/leases/{name}           release
//	GET    /v1/leases/{name}           who holds it; …/history and …/waiters
//	POST   /v1/leases/{name}/break     end a hold against its holder's will
//	POST   /v1/leases/{name}/handoff   have whoever leads hand over to another candidate
//	POST   /v1/leases/{name}/pause     have nobody lead; …/resume ends that
//	GET    /v1/leases                  all of a prefix
//	POST   /v1/sessions                one heartbeat for many leases; PUT and DELETE /v1/sessions/{id}
//	POST   /v1/verify                  is this sequencer current
//	GET    /v1/records/{key}           the store itself, for package client; PUT, DELETE, a list
//
// GET / of a browser is a page for people, package server/web.
//
// A name with a slash is written with %2F. A term is named by its sequencer, in the header Leasehold-Sequencer, or by the query
// parameters holder and token.
//
// Holder and token are public. What proves a term, or a session, is the secret that the answer to its POST tells once: requests in the
// name of its holder carry it in the header Leasehold-Secret.
//
// Errors are problems (RFC 9457) with a code that stays the same; package client turns them back into Leasehold's own errors.
//
// # Validity over HTTP
//
// "valid_for" counts from before the client sent its request, since the answer may have been long on its way. After a wait that
// may leave little or nothing: then the client renews first, and counts from that.
package server
