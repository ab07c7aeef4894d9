// Package server is the lock server: leases over HTTP, for scripts, configuration management, CI
// jobs and programs in any language.
//
// The store keeps who holds what, so the server has nothing that must not be lost. A server may be
// killed at any moment, and several may serve one store. Where the store is the embedded file, only
// one server is possible.
//
// # API
//
// The calls are under /v1, in JSON. The server serves their description, openapi.yaml:
//
//	POST   /v1/leases/{name}           acquire; with "wait" in its queue
//	PUT    /v1/leases/{name}           renew
//	DELETE /v1/leases/{name}           release
//	GET    /v1/leases/{name}           who holds it; …/history and …/waiters
//	POST   /v1/leases/{name}/break     end a hold against its holder's will
//	POST   /v1/leases/{name}/handoff   have the leader hand over to another candidate
//	POST   /v1/leases/{name}/pause     have nobody lead; …/resume ends that
//	GET    /v1/leases                  all of a prefix
//	POST   /v1/sessions                one heartbeat for many leases; PUT and DELETE /v1/sessions/{id}
//	POST   /v1/verify                  is this sequencer current
//	GET    /v1/records/{key}           the store itself, for package client; PUT, DELETE, a list
//
// A browser that asks for GET / gets a page for people, package server/web.
//
// A name with a slash is written with %2F. A term is named by its sequencer, in the header
// Leasehold-Sequencer, or by the query parameters holder and token.
//
// Holder and token are public. A secret proves a term or a session. Only the answer to its POST has
// the secret. Requests in the name of the holder carry it in the header Leasehold-Secret.
//
// Errors are problems (RFC 9457) with a stable code. Package client turns them back into
// Leasehold's own errors.
//
// # Validity over HTTP
//
// "valid_for" counts from before the client sent its request, since the answer may take long to
// arrive. After a wait, little or nothing of it may be left. Then the client renews first, and
// counts from the renewal.
package server
