// Package rdlm speaks the protocol of RDLM, the RESTful distributed lock manager, so that its
// clients need no change:
//
//	POST   /locks/{name}          acquire: {"title": …, "wait": seconds, "lifetime": seconds}
//	GET    /locks/{name}/{uid}    a lock, or a place in its queue
//	DELETE /locks/{name}/{uid}    release it, or leave the queue
//	GET    /resources             the names that are locked; DELETE: unlock all
//	GET    /resources/{name}      who has it, and who waits; DELETE: unlock it
//
// A lock is a lease of that name. It excludes holders that acquired the name in another way,
// survives a restart, and has a token.
//
// # Better than in RDLM
//
//   - Locks survive a restart of the server.
//   - A wait of 0 is answered at once, and expiry is exact. In RDLM both come with a sweep once a
//     second.
//   - A waiter whose connection closes is dropped at once, and never granted the lock.
//
// # More than in RDLM
//
//   - There are the header Leasehold-Token and the field token.
//   - PUT /locks/{name}/{uid} renews.
//   - A request may bring its own "uid" (32 random hexadecimal digits). Sent again, it gets the
//     lock that was granted meanwhile, or keeps its place in the queue. After a clean restart it
//     keeps the place, too, if it comes within 30 s of the new start.
//
// # Stricter than in RDLM
//
//   - A uid is a secret: a caller that knows it may renew and release the lock. So only the answer
//     to its own POST has it, and answers to requests under it. Administrators and all others see a
//     digest in its place. The digest lets them look at a lock, and not renew or release it. A
//     request's own "uid" has to be random.
//   - Requests that RDLM answers with 500 get 400, unless [Options.Strict] is set.
//   - A lifetime can't be longer than 366 days.
//   - Administration is closed unless you open it: see [Admin].
//   - An answer 204 has no Content-Length, which RFC 9110 forbids there.
package rdlm
