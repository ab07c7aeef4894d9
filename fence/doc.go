// Package fence is what a guarded resource needs, and all that it needs: tokens, and the rule that refuses a late one.
//
// A lease is for liveness: it says who should work now, by clocks. A token is for safety: it is a number that rises with
// every change of ownership, travels with each request, and lets the resource refuse a request of an earlier term without
// asking any clock. A process that was paused past the end of its lease still believes that it holds it when it wakes up;
// only the resource can stop it, by the token.
//
// A [Sequencer] carries the token, with the name and the holder, from whoever holds a lease to the resource; [Keys] sign it where
// clients aren't trusted. A [Guard] checks it: [Online] asks who holds the name now, [Offline] remembers the highest token
// that it has admitted. Where the resource is a database, the check belongs into the caller's own transaction or condition:
// the packages below this one make it.
//
// The package imports nothing but the standard library, so a resource that checks tokens links no store and no lease code.
package fence
