// Package fenceredis guards what is kept in Redis: the check of the fencing token and the caller's writes are one script, so that
// nothing can come between them.
//
//	var deposit = fenceredis.NewScript(`return redis.call('INCRBY', KEYS[1], ARGV[1])`)
//
//	guard, err := fenceredis.New(client, fenceredis.Options{Prefix: "{billing}:fence:"})
//	…
//	balance, err := guard.Run(ctx, l.Sequencer(), deposit, []string{"{billing}:balance"}, 100).Int64()
//
// The highest token that was admitted, and whose it was, is kept in a hash for each lease name, the mark. The first script of a new
// token writes it; the others compare it only. A script of an earlier term, or of another holder of the same term, is not run,
// and the error is a *[fence.StaleError] out of the same round trip.
//
// What writes to the caller's keys without this package is not guarded. Marks have no time to live.
//
// # What can be lost
//
// A mark is as durable as the caller's own keys, and no more. Redis acknowledges a write before its replicas have it, and unless
// appendfsync is always, before the disk has it. After a failover, or a crash, the last writes can be gone, and the mark of
// the newest term with them. Then a late request of the term before is admitted again, until the newest one's next write. Since
// the mark is in the slot of the keys that it guards, both are lost together: what is there then is what was there before the
// newest term's first write, or a later state with its mark. So writes are still accepted in the order of tokens, as seen by
// who reads Redis after the failover; but what the newest term had been told was done is undone, as it is without a guard, and
// what it did elsewhere because of that stays. WAIT makes the loss rare and doesn't rule it out. Where it matters, keep what is
// guarded in a store that acknowledges only what a majority, or a disk, has.
//
// A server that evicts keys (maxmemory-policy allkeys-…) may evict marks, and FLUSHALL takes them too: every token is admitted then.
package fenceredis
