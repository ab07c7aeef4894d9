// Package redis keeps records in Redis or Valkey.
//
//	client := goredis.NewClient(&goredis.Options{Addr: "redis:6379", ContextTimeoutEnabled: true})
//	st, err := redis.New(client, redis.Options{Prefix: "leasehold:"})
//
// It needs Redis 6 or later, or Valkey: a single server, one behind Sentinel, or a cluster, each
// with go-redis's client for it. docs/how-stores-work.md describes hashes, scripts and channels.
//
// # A failover may lose writes
//
// Redis replicates after it has answered. When its primary fails and a replica takes over, the last
// acknowledged writes may be gone. Then a held name may be given to another holder. A primary that
// is cut off also continues for a while. So Properties say fencing per primary, and code that
// demands more refuses this engine when it starts. Tokens still rise as long as wall clocks are
// roughly right. The guarded resource itself has to refuse older ones.
//
// [Options.Replicas] makes the loss less likely, not impossible. A lease is held, and renewed, only
// while that many replicas acknowledge writes. So no write is lost if one of those becomes the
// primary.
//
// Two more cases lose writes, and Inspect reports them. One is a crash of the machine, unless the
// server runs with appendonly yes and appendfsync always. The other is a server that may evict:
// maxmemory-policy allkeys-….
//
// # Cost
//
// Each operation is one Lua script on one key, so it takes one round trip, and any slot of a
// cluster will do. Writes that callers of one handle ask for while others run share pipelines,
// except with Replicas. A handle with waiters has one connection of its own. A write costs the
// server nothing for waiters for other keys. No keyspace notifications are needed.
//
// # Age
//
// Opt-in, see [Options.ClockStep]: the server's TIME less the one of the write, less the bound. It
// holds as long as no step of the server's wall clock is larger than the bound, nor the difference
// of the clocks of two servers at a failover.
//
// # Outcomes
//
//	not done    a write that the server answered with an error; a write that was never sent
//	unknown     all else: a connection that broke, a time-out, a context that ended; a write that too few replicas acknowledged
//
// The client never sends the engine's writes again, whatever its MaxRetries: the answer to the
// second would hide what the first did.
//
// A record may show a write of this handle whose outcome is unknown. With Replicas, it is returned
// only behind a second write that enough replicas acknowledge. While they don't acknowledge, Get,
// Wait and Put fail. Without Replicas, a read of the primary settles the outcome.
//
// go-redis doesn't look at a context while it waits for an answer, unless ContextTimeoutEnabled is
// set, and then at its deadline only. A call here returns when its context ends. Close waits for
// what was left behind, at most for the client's own time-outs.
//
// # What it can't guarantee
//
//   - Anything over a failover: see above.
//   - A List of a cluster whose slots are moving: it may miss a record that moves meanwhile.
//   - A cheap List: it scans all keys of the database.
//
// # Permissions
//
//	ACL SETUSER app on >password resetchannels ~leasehold:* &leasehold:* +evalsha +eval +hget +hmget +hset +hdel +exists +del +time +publish +subscribe +unsubscribe +ping +scan
//
// Inspect asks for +info, +config|get and +acl|whoami too, and reports what it couldn't see without
// them. Replicas need +wait, and a cluster client +cluster|slots, +cluster|shards and +command.
package redis
