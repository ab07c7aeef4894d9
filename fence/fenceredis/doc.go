// Package fenceredis guards data in Redis. The check of the fencing token and the caller's writes
// are one script, so nothing can come between them.
//
//	var deposit = fenceredis.NewScript(`return redis.call('INCRBY', KEYS[1], ARGV[1])`)
//
//	guard, err := fenceredis.New(client, fenceredis.Options{Prefix: "{billing}:fence:"})
//	…
//	balance, err := guard.Run(ctx, l.Sequencer(), deposit, []string{"{billing}:balance"}, 100).Int64()
//
// The mark is the highest token that was admitted, with its holder, in a hash for each lease name.
// The first script of a new token writes the mark; the others only compare it. A script of an
// earlier term, or of another holder of the same term, is not run. The error is a
// *[fence.StaleError], from the same round trip.
//
// A write to the caller's keys without this package is not guarded. Marks have no time to live.
//
// # What can be lost
//
// A mark is only as durable as the caller's own keys. Redis acknowledges a write before its
// replicas have it, and unless appendfsync is always, before the disk has it. After a failover or a
// crash the last writes can be gone, and the mark of the newest term with them. Then a late request
// of the term before is admitted again, until the newest term's next write.
//
// The mark is in the slot of the keys that it guards, so both are lost together. The server then
// has the state from before the newest term's first write, or a later state with its mark. So
// writes are still accepted in the order of tokens, as seen by a reader after the failover. But
// acknowledged writes of the newest term are undone, as they are without a guard. What the term did
// elsewhere because of them stays.
//
// WAIT makes the loss rare and doesn't exclude it. Where that matters, keep the data in a store
// that acknowledges only what a majority, or a disk, has.
//
// A server that evicts keys (maxmemory-policy allkeys-…) may evict marks. FLUSHALL removes them,
// too. Then every token is admitted.
package fenceredis
