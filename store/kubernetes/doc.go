// Package kubernetes keeps leases in Lease objects of Kubernetes (coordination.k8s.io/v1), one
// object a record. Leasehold and client-go's leader election exclude each other on them.
//
//	client, err := leases.Client(config) // a rest.Config of k8s.io/client-go
//	st, err := leases.New(client, leases.Options{Namespace: "billing"})
//
// # What it relies on
//
// It relies on the API server's etcd. A read of one object goes to a quorum of it, and a write is
// acknowledged when a quorum has it. No acknowledged write is lost as long as a majority of etcd's
// members keeps its disks. An etcd that is restored from a backup has forgotten what came after.
// Tokens rise over that, as long as clocks are roughly right.
//
// # Compare-and-swap
//
// The condition of a write is the object's uid and resourceVersion, which the server compares for
// equality. The first write of a record is a POST. Others are merge patches, which keep the labels,
// annotations and owners of others. A deletion has preconditions. Each of these is one request, and
// so is a read.
//
// A conflict is two requests, because the server's refusal doesn't have the current record: a
// second request reads it. It may be the same record, because another program has labelled the
// object or the like. Then the write is sent again. That takes three requests, and nobody loses a
// lease.
//
// Each write is sent once. client-go by itself would repeat one that is answered with 429, or 5xx
// and Retry-After. Then it could no longer be known whether the first had been carried out.
//
//	not done   an answer of 4xx; a connection that was never made
//	unknown    an answer of 5xx; a connection that broke
//
// # Waiting
//
// By watch: one for each name that is waited for, with a field selector. From the ninth name on, it
// is one watch for the whole namespace. All Waits of a handle share them, and a name is watched for
// some 10 s after the last Wait for it.
//
// The first Wait for a name reads it from a quorum. From then on a Wait returns what the watch
// reports, without a request. The report has to come after the last known version, after all that
// this handle has shown to any caller, and after the version that the Wait began with. So no caller
// gets an older record than it has seen. The order is that of resource versions as numbers.
// Kubernetes guarantees it from 1.35 on, and has kept it before.
//
// Whatever is in doubt is read from a quorum:
//
//   - a deletion;
//   - a version that is no number or doesn't rise, as after a restore from a backup;
//   - everything after a watch that began without knowing where it had been.
//
// A watch lasts 10 minutes, and then continues from where it was. The server sends a bookmark every
// minute. The watch is requested again after 20 s of silence on all watches of the handle, or 75 s
// of silence on this one. So a connection that died in silence is noticed. A watch continues over
// lost connections, restarts of the server and expired histories (410 Gone).
//
// # Cost
//
//	                       requests a minute, at a TTL of 15 s
//	waiting candidate      13 renewals of its session, one read, and four watches every 10 minutes
//	leader                 16 writes more
//	client-go's elector    19 reads; as a leader 30 writes
//
// Requests in a minute on a real API server, by a leader and its candidates (go test
// ./internal/proof/engines -run TestFinding_N1 -v -requests 1m):
//
//	candidates   Leasehold   client-go
//	1            43          48
//	20           314         406
//	100          1,467       1,903
//
// # Age
//
// None. The only clock to use would be that of the API server, which is one of several.
//
// # The object
//
//	metadata.name                                    the key, if it is an RFC 1123 subdomain; else an escape of it: shard--2f17
//	spec.holderIdentity                              Owner; "" when nobody holds it
//	spec.leaseDurationSeconds                        TTL, rounded up, and one more where it is under 4 s; see below for sessions
//	spec.acquireTime, renewTime                      Acquired, and when the record was last written or touched
//	spec.leaseTransitions                            one more whenever there is another holder
//	metadata.annotations leasehold.dev/record        the whole record, exact
//	                     leasehold.dev/transitions   of the term that the record describes
//	                     leasehold.dev/write         another one with each write of the record
//	                     leasehold.dev/touch         another one with each touch of it
//	                     leasehold.dev/key           the key, where the name is another
//	metadata.labels      app.kubernetes.io/managed-by    leasehold, unless others wrote it
//	                     leasehold.dev/kind              lease, rw, semaphore, election, pool; session, candidates, lock, …
//	metadata.ownerReferences                         Options.Owner, where this package made the object
//
// A name is readable where possible: each byte that doesn't fit is "--" and two hexadecimal digits.
// A name that gets longer than 253 bytes is cut and gets a hash. The annotation then has the key,
// and shows whether the object is another key's, should hashes collide. Every Lease of the
// namespace is a record, those of others too.
//
// # Sharing a Lease with client-go
//
// A key of Leasehold and a LeaseLock of that name exclude each other. Each judges by its own clock
// when the other's hold is dead.
//
// The transitions show what client-go wrote. Such a record has the holder and times of the
// specification, and the state and history of the annotations. Its token is one higher for each
// transition. So tokens rise over client-go's terms as well. But client-go doesn't know them, so a
// resource that tokens guard is not guarded from client-go.
//
//   - A sign of life is what the holder wrote: times, holder, transitions, duration. Labels and
//     annotations are none, to either.
//   - client-go cuts its duration to whole seconds. Leasehold counts a hold of client-go's one
//     second longer.
//   - client-go compares times cut to whole seconds, so it would overlook a renewal in the same
//     second as the one before. Each renewal gets a second of its own: renewTime may be a few
//     seconds ahead after a burst of writes. A TTL under 4 s may be renewed more than once a
//     second. For such a TTL the duration is a second longer instead.
//   - client-go can't see that a session is renewed. So a session touches the Leases that it keeps
//     ([driver.Toucher]): every TTL/4 it writes renewTime, the real duration and the holder. A
//     lease whose Touch fails for too long ends, as its own renewal's would.
//   - A touch is one write every TTL/4 for each of the first 16 leases of a session: 16 a minute at
//     a TTL of 15 s. That is as many as for the session itself, and about half of what client-go's
//     leader writes. Further leases are not touched. They have a duration of 366 days, and if the
//     session dies, only Leasehold takes them before that.
//   - client-go's holder stops only when it has failed to renew for RenewDeadline. If an operator
//     frees or breaks its lease before that, two are at work. If nobody acquires the lease, that
//     holder takes it back.
//   - When client-go's holder stops after it was overtaken unawares, it takes the new holder out of
//     the Lease (ReleaseOnCancel). For Leasehold that ends no hold of Leasehold's: the holder's
//     next renewal or Touch corrects it. Another elector may take the Lease before. Then the holder
//     notices with that write, TTL/3 later at the latest, and stops.
//
// # Connections
//
// Take the client that [Client] returns, or one over [TransportFor]. The command does. Other
// clients have a problem each:
//
//   - Over HTTP/2, the rule with client-go, all requests share one connection. It may die in
//     silence, by a firewall that has forgotten it or a load balancer that was replaced. Then every
//     request hangs until the client notices, after 45 s as a rule. That is longer than most
//     leases.
//   - Over HTTP/1.1 each running request has a connection of its own. A new one takes several round
//     trips, too long for a renewal while the network is slow.
//
// [Client] has up to four connections of HTTP/2. A request takes one on which no other request has
// waited for half a second, and which was silent to none for the last 10 s. If there is none, the
// request takes a late one, and a GET of /version opens another beside it. On a slow network that
// takes three round trips, for which no request waits. So a renewal that is sent again, because it
// has no answer, soon uses another connection.
//
// Both clients let through as many requests as are made. client-go's default is 5 a second.
//
// # Permissions
//
// The verbs get, list, watch, create, patch and delete on leases in the namespace: see [Role].
//
// # What it can't guarantee
//
//   - Thousands of leases a second: each renewal is a write to the cluster's etcd. Keep many leases
//     under one session.
//   - That a record is gone after Delete if a finalizer of another program protects it: the outcome
//     is unknown then.
package kubernetes
