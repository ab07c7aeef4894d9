// Package redis keeps records in Redis or Valkey.
//
//	client := goredis.NewClient(&goredis.Options{Addr: "redis:6379", ContextTimeoutEnabled: true})
//	st, err := redis.New(client, redis.Options{Prefix: "leasehold:"})
//
// It needs Redis 6 or later, or Valkey: a single server, one behind Sentinel, or a cluster, each with go-redis's client for
// it.
//
// # A failover may lose writes
//
// Redis replicates after it has answered. When its primary fails and a replica takes over, the last writes that were
// acknowledged may be gone, and a name that somebody holds may be given to somebody else. A primary that is cut off goes on
// for a while, too. So Properties say fencing per primary, and code that demands more refuses this engine when it starts.
// Tokens still rise as long as wall clocks are roughly right; what is guarded has to refuse older ones itself.
// [Options.Replicas] makes the loss less likely, not impossible: a lease is held, and renewed, only while so many replicas acknowledge
// writes, so none is lost if one of those becomes the primary. The same goes for a crash of the machine unless the server
// runs with appendonly yes and appendfsync always, and for a server that may evict: maxmemory-policy allkeys-…. Inspect
// tells.
//
// # Compare-and-swap
//
// A record is a hash under Prefix and its key: version, record (JSON), written, and past0 to past7, a field for each ended
// term. Each operation is one Lua script on that one key, so one round trip, and each slot of a cluster does. A version begins
// with a random text of 26 characters that its writer made up, so none comes again. Scripts are sent by their digest, and once
// whole to a server that doesn't know them. There is no TTL on any key. Reads are scripts as well: they go to the primary, and
// one that reached a replica is refused.
//
// Terms are most of a record, and few writes end one. So the version goes on with the field of the newest term, how many there
// are, and digests of them: whoever writes at that version sends a term that is new, and none that is there. What fields hold
// of which the version doesn't speak is a term that was dropped. A record with its terms inside is read as well.
//
// Writes of one handle that are asked for while others are under way go together, at most 100, when those are answered or a
// millisecond later: in one pipeline for each 16 KiB, which is what a server reads from a connection before it syncs and
// answers. Each is a script of its own, with an outcome of its own. With Replicas each goes alone.
//
// # Waiting
//
// A script that writes publishes the key on a channel of that key, Prefix + "changed:" + key. A handle on which somebody waits has one
// connection that subscribes to the channels of the keys that its Waits wait for, or did in the last half minute. So a write costs the server
// nothing for those who wait for other keys. Beneath that the handle reads what is waited for every 5 to 10 s, and while it isn't subscribed
// every 20 ms to 1 s. No keyspace notifications are needed.
//
// Versions of this package before v1 published all keys on Prefix + "changed", and subscribed to nothing else. Handles subscribe to that,
// too, where nobody publishes any more; but they don't publish there, for all would hear it. So while both versions run, an older process that
// waits learns of a newer one's write within 10 s, and each write of an older one reaches all who wait.
//
// # Age
//
// Opt-in, see [Options.ClockStep]: the server's TIME less the one of the write, less the bound. It holds as long as no step
// of the server's wall clock is larger than the bound, nor the difference of the clocks of two servers at a failover.
//
// # Outcomes
//
// A write that the server answered with an error is not done, and so is one that was never sent. All else is unknown: a
// connection that broke, a time-out, a context that ended. The engine's writes are not sent again by the client, whatever
// its MaxRetries: the answer to the second would hide what the first did. A write that too few replicas acknowledged is of
// unknown outcome. With Replicas, a record that shows such a write of this handle is returned only behind a second write that
// enough replicas acknowledge: a script on the same key that changes nothing. While they don't, Get, Wait and Put fail.
// Without Replicas, a read of the primary settles it. Confirm is such a script, too.
//
// go-redis doesn't look at a context while it waits for an answer, unless ContextTimeoutEnabled is set, and then at its
// deadline only. A call here returns when its context ends; Close waits for what was left behind, at most for the client's
// own time-outs.
//
// # What it can't promise
//
//   - Anything over a failover, as said above.
//   - A List of a cluster whose slots are moving: it may miss a record that moves meanwhile.
//   - A cheap List: it scans all keys of the database.
//
// # Permissions
//
//	ACL SETUSER app on >password resetchannels ~leasehold:* &leasehold:* +evalsha +eval +hget +hmget +hset +hdel +exists +del +time +publish +subscribe +unsubscribe +ping +scan
//
// Inspect asks for +info, +config|get and +acl|whoami too, and says what it couldn't see without; Replicas need +wait, and a
// cluster client +cluster|slots, +cluster|shards and +command.
package redis
