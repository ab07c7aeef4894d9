// Package kubernetes keeps leases in Lease objects of Kubernetes (coordination.k8s.io/v1), one
// object a record. Leasehold and client-go's leader election exclude each other on them.
//
//	client, err := leases.Client(config) // a rest.Config of k8s.io/client-go
//	st, err := leases.New(client, leases.Options{Namespace: "billing"})
//
// docs/how-stores-work.md describes the object, the watches and the connections.
//
// # What it relies on
//
// It relies on the API server's etcd. A read of one object goes to a quorum of it, and a write is
// acknowledged when a quorum has it. No acknowledged write is lost as long as a majority of etcd's
// members keeps its disks. An etcd that is restored from a backup has forgotten what came after.
// Tokens rise over that, as long as clocks are roughly right.
//
// # Outcomes
//
// Each write is sent once. client-go by itself would repeat one that is answered with 429, or 5xx
// and Retry-After. Then it could no longer be known whether the first had been carried out.
//
//	not done   an answer of 4xx; a connection that was never made
//	unknown    an answer of 5xx; a connection that broke
//
// # Cost
//
// A read and a write are one request each. A write in conflict is two, or three where another
// program has only labelled the object. A Wait takes a watch, and no request once that runs.
//
//	                       requests a minute, at a TTL of 15 s
//	waiting candidate      13 renewals of its session, one read, and four watches every 10 minutes
//	leader                 16 writes more
//	client-go's elector    19 reads; as a leader 30 writes
//
// # Age
//
// None. The only clock to use would be that of the API server, which is one of several.
//
// # Sharing a Lease with client-go
//
// A key of Leasehold and a LeaseLock of that name exclude each other. Each judges by its own clock
// when the other's hold is dead. Tokens rise over client-go's terms as well. But client-go doesn't
// know them, so a resource that tokens guard is not guarded from client-go.
//
//   - A session touches the first 16 Leases that it keeps, each by one write every TTL/4, because
//     client-go can't see that a session is renewed. Further leases have a duration of 366 days: if
//     the session dies, only Leasehold takes them before that.
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
// Take the client that [Client] returns, or one over [TransportFor], as the command does. Another
// client may hang for 45 s on a connection that died in silence, longer than most leases. These two
// have up to four connections of HTTP/2, and a request takes one that answers. They let through as
// many requests as are made: client-go's default is 5 a second.
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
//   - That no Wait returns an older record than this handle has shown, before Kubernetes 1.35. The
//     order is that of resource versions as numbers, which Kubernetes has kept before, too.
package kubernetes
