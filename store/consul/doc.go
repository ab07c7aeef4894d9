// Package consul keeps records in Consul's key-value store, one key each, under one prefix. It takes the caller's own client:
//
//	client, err := api.NewClient(api.DefaultConfig()) // CONSUL_HTTP_ADDR and the like
//	st, err := consul.New(client, consul.Options{Prefix: "leasehold"})
//
// Sessions, their TTLs and lock-delay are not used. A session ties ownership to the health of a node and to timers of the
// server's: it may be invalidated while its holder is well, its TTL is a lower bound only, and lock-delay keeps a name that
// was let go from the next holder. Here a lease is a record, and compare-and-swap is all that the server does.
//
// # Layout
//
// leasehold/team/billing is the record team/billing, as JSON. A / is kept as it is, so that Consul's page shows folders and
// rules may name a folder, but where Consul would take it for a part of a path to be tidied (//, a trailing one, . and ..).
// That, %, = and space are written as =XX per byte.
//
// # Compare-and-swap
//
// A version is the key's ModifyIndex: the number of the Raft entry that wrote it, so it never comes again. Each write is one
// transaction (/v1/txn) with one cas, which, unlike PUT /v1/kv, answers with the new index: one round trip. Consul writes
// nothing, and keeps the index, when value and flags are what they were; the flags therefore bear the index that the
// write replaces.
//
// Writes of one handle that are asked for while two others are under way go together, when one is answered or a millisecond
// later: in one transaction for each 64 KiB, which is what the largest record takes alone. When the server refuses such a
// transaction nothing is written, and each write is sent by itself. The records of one transaction have one index.
//
// A conflict takes a second round trip, to read the record that was there instead: a transaction that fails returns no data.
//
// # Consistency
//
// Writes go through Raft. Reads are of the consistent mode: the leader asks a majority whether it still leads before it
// answers. (In Consul's default mode a leader that has been replaced without knowing answers from what it has.)
//
// A cluster is one datacenter. Consul doesn't replicate keys to others, so agents in two datacenters, each asked without a
// datacenter in the client's configuration, are two stores.
//
// # Waiting
//
// Wait is a blocking query: the server answers when the key's index passes the one given. All waiters for a key share one. A
// query is ended after a minute and sent anew, so that a connection that died without a word is found out. An agent takes
// 200 connections from one address (limits.http_max_conns_per_client), and over HTTP/1.1 each query holds one: at most
// Options.MaxQueries are under way, and if there are more keys to wait for, they take turns of a second.
//
// A query that is answered with nothing new is followed by one that doesn't wait, after a pause of up to a quarter of a
// second: so answers a server that was put back to a copy, whose indexes then begin anew.
//
// # Outcomes
//
// A transaction that was answered by 409, or by another 4xx, was refused. So was one to which the answer is that there is no
// leader. Any other 5xx, a connection that broke and a context that ended leave the outcome unknown, unless the request never
// got a connection.
//
// # Permissions
//
// key_prefix "leasehold/" { policy = "write" }, which includes reading; where acl.enable_key_list_policy is set it includes
// listing too. Inspect also reads the agent's version (agent:read), and does without.
//
// # What it can't promise
//
//   - Age: Consul keeps no times of keys.
//   - That a List is whole for those who have no token and a right to a part of the prefix: Consul doesn't tell them.
//   - Safety against copies: after `consul snapshot restore`, or when a cluster was made anew, what came after the copy is
//     forgotten, and indexes may come again.
//   - A List in parts: the answer has all records under the prefix at once, 100,000 of them in some 50 MB.
//   - Records larger than the server takes: kv_max_value_size and txn_max_req_len are 512 KiB, and ours at most 64.
package consul
