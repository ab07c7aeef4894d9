// Package consul keeps records in Consul's key-value store, one key each, under one prefix. It
// takes the caller's own client:
//
//	client, err := api.NewClient(api.DefaultConfig()) // CONSUL_HTTP_ADDR and the like
//	st, err := consul.New(client, consul.Options{Prefix: "leasehold"})
//
// The store doesn't use Consul's sessions, their TTLs and lock-delay. A session ties a hold to the
// health of a node and to the server's timers. It may be invalidated while its holder is well, its
// TTL is only a lower bound, and lock-delay keeps a released name from the next holder. Here a
// lease is a record, and the server only does compare-and-swap.
//
// # Layout
//
// leasehold/team/billing is the record team/billing, as JSON. A / is kept as it is, so that
// Consul's page shows folders and rules may name a folder. The exceptions are those that Consul
// would tidy as part of a path: //, a trailing one, . and .. . These, %, = and space are written as
// =XX per byte.
//
// # Compare-and-swap
//
// A version is the key's ModifyIndex: the number of the Raft entry that wrote it, so it never comes
// again. Each write is one transaction (/v1/txn) with one cas, in one round trip. Unlike PUT
// /v1/kv, it answers with the new index. Consul writes nothing, and keeps the index, when value and
// flags are unchanged. So the flags have the index that the write replaces.
//
// Writes that callers of one handle ask for while two others run go together, in one transaction
// for each 64 KiB. It is sent when one of the two is answered, or a millisecond later. The largest
// record takes 64 KiB alone. When the server refuses such a transaction, nothing is written, and
// each write is sent by itself. The records of one transaction have one index.
//
// A conflict takes a second round trip, to read the record that was there instead: a transaction
// that fails returns no data.
//
// # Consistency
//
// Writes go through Raft. Reads are of the consistent mode: before it answers, the leader asks a
// majority whether it still leads. (In Consul's default mode a leader that has been replaced
// without knowing answers from what it has.)
//
// A cluster is one datacenter. Consul doesn't replicate keys to others. So agents in two
// datacenters, each asked without a datacenter in the client's configuration, are two stores.
//
// # Waiting
//
// Wait is a blocking query: the server answers when the key's index passes the given one. All
// waiters for a key share one query. A query ends after a minute and is sent again, so that a
// connection that died in silence is detected.
//
// An agent takes 200 connections from one address (limits.http_max_conns_per_client), and over
// HTTP/1.1 each query holds one. So at most Options.MaxQueries run at once. If there are more keys
// to wait for, they take turns of a second.
//
// A query that is answered with nothing new is followed by one that doesn't wait, after a pause of
// up to a quarter of a second. A server that was restored from a copy answers like that, because
// its indexes restart.
//
// # Outcomes
//
//	refused   the answer is 409, or another 4xx, or that there is no leader
//	unknown   any other 5xx, a connection that broke, a context that ended; unless the request never got a connection
//
// # Permissions
//
// key_prefix "leasehold/" { policy = "write" }, which includes reading. Where
// acl.enable_key_list_policy is set, it includes listing, too. Inspect also reads the agent's
// version (agent:read), and works without.
//
// # What it can't guarantee
//
//   - Age: Consul keeps no times of keys.
//   - That a List is complete for a caller without a token or without the right to a part of the
//     prefix: Consul doesn't report that.
//   - Safety against copies. After `consul snapshot restore`, or when a cluster was made again,
//     what came after the copy is forgotten, and indexes may come again.
//   - A List in parts: the answer has all records under the prefix at once, 100,000 of them in some
//     50 MB.
//   - Records larger than the server takes: kv_max_value_size and txn_max_req_len are 512 KiB, and
//     our records at most 64.
package consul
