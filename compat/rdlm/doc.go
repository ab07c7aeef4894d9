// Package rdlm speaks the protocol of RDLM, the RESTful distributed lock manager, so that its clients need not be changed:
//
//	POST   /locks/{name}          acquire: {"title": …, "wait": seconds, "lifetime": seconds}
//	GET    /locks/{name}/{uid}    a lock, or a place in its queue
//	DELETE /locks/{name}/{uid}    release it, or leave the queue
//	GET    /resources             the names that are locked; DELETE: unlock all
//	GET    /resources/{name}      who has it, and who waits; DELETE: unlock it
//
// A lock is a lease of that name: it excludes those who take it in another way, survives a restart, and has a token.
//
// # What is better than there
//
// Locks survive a restart of the server. A wait of 0 is answered at once, and expiry is exact; there both come with a sweep once a
// second. A waiter whose connection closes is dropped at once, and never granted the lock.
//
// What is more: the header Leasehold-Token and the field token; PUT /locks/{name}/{uid} renews; and a request may bring its own
// "uid" (32 random hexadecimal digits): sent again it gets the lock that it has been granted meanwhile, or keeps its place in the queue.
// It keeps that over a restart, too, if the server was ended and not killed, and the request comes within 30 s of the new start.
//
// # What is stricter
//
// A uid is a secret: who knows it may renew and release the lock. So only the answer to its own POST, and what is asked under it, has it.
// Administrators and all others are shown a digest in its place, by which a lock can be looked at, and neither renewed nor released. A request's own "uid" has to be random.
//
// Requests that RDLM answers with 500 are answered with 400, unless [Options.Strict] is set. A lifetime can't be longer than 366
// days. Administration is closed unless it is opened: see [Admin]. An answer 204 has no Content-Length, which RFC 9110 forbids there.
package rdlm
