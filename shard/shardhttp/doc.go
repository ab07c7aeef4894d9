// Package shardhttp routes HTTP requests to the workers that own their keys in a space of package
// shard.
//
// At each worker, before its handler:
//
//	http.Handle("/", shardhttp.Handler(owner, api, shardhttp.Options{}))
//
// At a caller, for every request of a client:
//
//	client := &http.Client{Transport: shardhttp.Transport(nil, router, shardhttp.Options{})}
//
// The key of a request is in the header Leasehold-Key, or where Options.Key says. The transport
// sends the request to the address that the router knows. A worker that doesn't own the key answers
// 421 Misdirected Request, with the owner's address in the header Leasehold-Owner, and JSON:
//
//	{"error":"wrong_owner","message":"…","owner":"10.0.0.7:80","token":42}
//
// The transport then sends the request to that owner. While the slice moves, or its worker has
// died, the transport waits for the next owner, 10 s by default, so that a planned restart loses no
// request: see [Options]. A request without a key gets 400 and the error key_missing.
//
// A worker that leaves serves its listener a little longer than [shard.Owner.Leave] takes, a second
// for instance: callers whose router is late get a 421 then, and no broken connection.
//
// # Limits
//
//   - The transport sends a request again only if its body can be had again, by
//     [http.Request.GetBody].
//   - The transport trusts workers: it follows the address that a 421 names.
package shardhttp
