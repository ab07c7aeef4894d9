// Package kubernetes keeps leases in Lease objects of Kubernetes (coordination.k8s.io/v1), one object a record. client-go's
// leader election can share them, in both directions.
//
//	client, err := leases.Client(config) // a rest.Config of k8s.io/client-go
//	st, err := leases.New(client, leases.Options{Namespace: "billing"})
//
// # What it relies on
//
// The API server's etcd: a read of one object goes to a quorum of it, and a write is acknowledged when a quorum has it. No
// write that was acknowledged is lost as long as a majority of etcd's members keeps its disks. An etcd that is put back from a
// backup has forgotten what came after; tokens rise over that, as long as clocks are roughly right.
//
// # Compare-and-swap
//
// The condition of a write is the object's uid and resourceVersion, which the server compares for equality. The first write of
// a record is a POST, others are merge patches, which leave alone the labels, annotations and owners that others put on the
// object; a deletion has preconditions. Each is one request; a read is one as well. A conflict is two, because the server's
// refusal doesn't tell what is there instead: a second request reads that. If it is the same record, because somebody has
// labelled the object or the like, the write is sent again: it takes three requests then, and nobody loses a lease.
//
// Each write is sent once. client-go by itself would repeat one that is answered with 429, or 5xx and Retry-After, and
// whether the first had been carried out could not be told any more. An answer of 4xx says that the write was not done, 5xx
// leaves it unknown; so does a connection that breaks, unless it was never made.
//
// # Waiting
//
// By watch: one for each name that is waited for, with a field selector, or from the ninth name on one for the whole
// namespace. All Waits of a handle share them, and a name is watched for some 10 s after the last Wait for it.
//
// The first Wait for a name reads it from a quorum. From then on a Wait returns what the watch tells, without a request, if that comes after the
// last known version, after all that this handle has shown to anyone, and after the version that the Wait began with. So nobody
// gets an older record than he has seen. The order is that of resource versions as numbers, which Kubernetes promises from 1.35
// on and has kept before. Whatever is in doubt is read from a quorum: a deletion, a version that is no number or doesn't rise (as after a
// backup was put back), and everything after a watch was begun without knowing where it had been.
//
// A watch lasts 10 minutes, and then continues from where it was. It is asked for again after 20 s in which nothing was heard of any watch of the
// handle, or 75 s in which nothing was heard of it: the server sends a bookmark every minute. So a connection that died in silence is
// noticed. It continues over lost connections, restarts of the server and expired histories (410 Gone).
//
// # Cost
//
// A candidate of an election that waits makes its session's renewals, 13 writes a minute at a TTL of 15 s, one read a minute, and four
// watches every 10 minutes; the leader 16 writes a minute more. client-go's elector makes 19 reads a minute, and as a leader 30 writes.
// Requests in a minute on a real API server, a leader and so many candidates (go test ./internal/proof/engines -run TestFinding_N1 -v -requests 1m):
//
//	candidates   Leasehold   client-go
//	1            43          48
//	20           314         406
//	100          1,467       1,903
//
// # Age
//
// None. The only clock to go by would be that of the API server, which is one of several.
//
// # The object
//
//	metadata.name                                    the key, if it is an RFC 1123 subdomain; else an escape of it: shard--2f17
//	spec.holderIdentity                              Owner; "" when nobody holds it
//	spec.leaseDurationSeconds                        TTL, rounded up, and one more where it is under 4 s; see below for sessions
//	spec.acquireTime, renewTime                      Acquired, and when the record was last written or touched
//	spec.leaseTransitions                            one more whenever there is another holder
//	metadata.annotations leasehold.dev/record        the whole record, exact
//	                     leasehold.dev/transitions   of the term that the record tells of
//	                     leasehold.dev/write         another one with each write of the record
//	                     leasehold.dev/touch         another one with each touch of it
//	                     leasehold.dev/key           the key, where the name is another
//	metadata.labels      app.kubernetes.io/managed-by    leasehold, unless others wrote it
//	                     leasehold.dev/kind              lease, rw, semaphore, election, pool; session, candidates, lock, …
//	metadata.ownerReferences                         Options.Owner, where this package made the object
//
// A name is readable where it can be: each byte that doesn't fit is "--" and two hexadecimal digits. One that gets longer than
// 253 bytes is cut and gets a hash; the annotation tells the key, and that the object is another key's, should hashes collide.
// Every Lease of the namespace is a record, those of others too.
//
// # Sharing a Lease with client-go
//
// A key of Leasehold and a LeaseLock of that name exclude each other. Each judges by its own clock when the other's hold is
// dead. What client-go wrote is told by its transitions: the record then has the holder and times of the specification, the
// state and history of the annotations, and a token that is one higher for each transition. So tokens rise over its terms as
// well, but client-go doesn't know them: what is guarded by tokens is not guarded from it.
//
//   - A sign of life is what its holder wrote: times, holder, transitions, duration. Labels and annotations are none, to either.
//   - client-go cuts its duration to whole seconds. A hold of its counts one second longer here.
//   - It compares times cut to whole seconds, so a renewal in the second of the one before would be none to it. Each gets a
//     second of its own: renewTime may be a few seconds ahead after a burst of writes. For a TTL under 4 s, which may be
//     renewed more than once a second, the duration is a second longer instead.
//   - It can't see that a session is renewed. So a session touches the Leases that it keeps ([driver.Toucher]): every TTL/4 it writes
//     renewTime, the real duration and the holder, and a lease whose Touch fails for too long ends, as its own renewal's would. That is
//     one write every TTL/4 for each of the first 16 leases of a session: 16 a minute at a TTL of 15 s, as many as for the session
//     itself and about half of what client-go's leader writes. Further leases are not touched: those have a duration of 366 days, and
//     if the session dies only Leasehold takes them before that.
//   - Its holder stops only when it has failed to renew for RenewDeadline. Whoever frees or breaks its lease before that has
//     two at work, and if nobody takes it, it takes it back.
//   - When it stops after it was overtaken unawares, it takes the new holder out of the Lease (ReleaseOnCancel). That ends no
//     hold of Leasehold's, to Leasehold: the holder's next renewal or Touch puts it right. Another elector may take the Lease before;
//     then the holder notices with that write, TTL/3 later at the latest, and stops.
//
// # Connections
//
// Over HTTP/2, the rule with client-go, all requests share one connection, and when it dies in silence (a firewall that has
// forgotten it, a load balancer that was replaced) every one hangs until the client notices, after 45 s as a rule: longer than
// most leases. Over HTTP/1.1 each request that is under way has a connection of its own, and a new one takes several round trips:
// too long for a renewal while the network is slow. So take the client that [Client] returns, or one over [TransportFor]: it has
// up to four connections of HTTP/2. A request takes one on which no other has waited for half a second, and which was silent to
// none for the last 10 s. Where there is none, it takes one that is late, and another is opened beside, by a GET of /version: on a slow
// network that takes three round trips, for which no request waits. So a renewal that is sent again, because it has had no answer, goes
// by another connection soon. Both clients let as many requests through as are made, where client-go's default is 5 a
// second. The command has them.
//
// # Permissions
//
// The verbs get, list, watch, create, patch and delete on leases in the namespace: see [Role].
//
// # What it can't promise
//
//   - Thousands of leases a second: each renewal is a write to the cluster's etcd. Keep many leases under one session.
//   - That a record which somebody else protects by a finalizer is gone after Delete: the outcome is unknown then.
package kubernetes
