// Package fence has what a guarded resource needs: tokens, and the rule that refuses a late one.
//
// A lease is for liveness: it says, by clocks, who should work now. A token is for safety: it is a
// number that rises with every change of holder and travels with each request. The resource can
// then refuse a request of an earlier term without reading a clock. A process that was paused past
// the end of its lease still believes that it holds the lease. Only the resource can stop it, by
// the token.
//
// A [Sequencer] carries the token, with the name and the holder, from the holder of a lease to the
// resource. [Keys] sign it where clients aren't trusted.
//
// A [Guard] checks it: [Online] asks who holds the name now, and [Offline] remembers the highest
// token that it has admitted. Where the resource is a database, check the token in the same
// transaction or condition as the write. The packages below this one do that.
//
// The package imports only the standard library, so a resource that checks tokens links no store
// and no lease code.
package fence
