// Package driver is what the author of an engine needs beside the contract in package store.
//
// An engine is a package that keeps [store.Record] values in a database. It takes the database's
// own client from its caller, and implements [store.Store]. Programs that only use a store don't
// need this package. The example is a whole engine.
//
// # What to implement, in this order
//
//  1. Get, Put and Delete of [store.Store]. Call [CheckKey] first in Get and Delete, and [Check] or
//     [Marshal] first in Put. Store the bytes that Marshal returns, under the key, with a version
//     of the engine's own. A version never returns, not even after the key was deleted and created
//     again. Return [Canonical] of the record from Put, so that Put returns what the next Get will.
//     Return [NotFound] for a key that is not stored, and [Corrupt] for a row that [Unmarshal]
//     refuses. Return a [*store.ConflictError] with the stored record for another version.
//  2. Unknown outcomes. Return [Unknown] for each write that may have reached the server without an
//     answer: a timeout, a lost connection, a context that ended. A refusal proves that a write was
//     not done only if no other copy of the same request can still arrive. So switch off the
//     client's own retries of writes, or count the copies.
//  3. List. Call [CheckPrefix] first. Yield a [Corrupt] error for a row that can't be read, and
//     continue.
//  4. Close. It makes every later call, and each Wait that still blocks, return [store.ErrClosed].
//  5. [store.Waiter], if the server can push changes. [store.Wait] polls an engine without it.
//  6. [store.Describer]: what a read is worth, how far tokens can be relied on. Be honest, not
//     hopeful.
//  7. [store.Confirmer], if a Get can show what a failover takes away, or less than what was
//     acknowledged.
//  8. [store.Record] Age, only if the engine can vouch for it whatever wall clocks do. Otherwise
//     leave it 0.
//  9. [Inspector], for `leasehold doctor`: permissions, schema, consistency mode, the server's
//     clock.
//
// Two interfaces are for few engines. [Witness] is for an engine that can prove the end of a
// process, such as a file with locks of the kernel. [Toucher] is for an engine whose records are
// read by programs that know nothing of sessions. Such records bear [ForeignNonce] where those
// programs wrote them.
//
// # What storetest checks
//
// An engine is right when storetest.Run passes on it, against the real server. The suite checks:
//
//   - records: every field comes back, limits are kept, odd keys and prefixes are taken literally;
//   - writes: compare-and-swap under contention, conflicts that carry the stored record, versions
//     that never return;
//   - reads: linearizable, also under writes, and worth what [store.Properties] says;
//   - List: thousands of records, changes meanwhile, a caller that stops early;
//   - contexts and Close: each call ends promptly, and a call whose context was done before does
//     nothing;
//   - unknown outcomes: each request and each reply lost in turn, and the server cut off, if the
//     hooks Cut and Heal are set;
//   - Wait: no lost wake-up, also across a lost connection, and many waiters at once;
//   - Age: never more than the truth;
//   - reopening: no record is lost when all handles are closed.
//
// storetest.Crashes checks an engine whose server a test can kill: no acknowledged write is lost,
// and each waiter is woken.
//
// storetest.RunFailovers checks a replicated engine: no acknowledged write is lost that
// [store.Properties] promises to keep.
package driver
