// Package lock has the locks that several holders share, or that are taken in turn: a mutex, a
// read/write lock, a weighted semaphore, and several names at once. A [lease.Session] keeps all of
// them, on any store, and all have fencing tokens. When a holder dies, its share is free after the
// TTL of its session.
//
//	s, err := manager.OpenSession(ctx)
//	sem, err := lock.NewSemaphore(s, "licences", lock.SemaphoreOptions{Limit: 5})
//	h, err := sem.Acquire(ctx, 1)
//	…
//	err = h.Release(ctx)
//
// # How it works
//
// A mutex is a lease of the session. The other locks have a roster in the data of the name's own
// record. The roster lists who holds which share, and who waits, in order. A fair mutex has its
// roster in a record beside its own, ".lock/NAME", which only says whose turn it is to acquire the
// lease. Every change is one compare-and-swap of that record:
//
//	            ┌ enough is free, and nobody waits before me ──► write me in, under the next token ──► held
//	read roster ┤
//	            └ else: write me at the end of the queue (if it is fair, or I have waited for a TTL), and wait for the roster to change
//	                    ──► read roster
//
// A waiter also looks at the sessions before it, every third of the TTL. A session that is gone, or
// was not renewed for its TTL, is first closed, so that its process can't renew it any more. Then
// it is taken off the roster. That is the rule by which a lease is taken. Where the store proves
// that a process has ended ([driver.Witness]), the waiters behind it learn of that and look at
// once.
//
// A share is valid as long as its session is: [Hold.Check] checks the session. A share is written
// under an id that was never used before. So a write of unknown outcome is recognised when the
// roster is read. A share that is given up is taken off again; the session retries that as long as
// it lives.
//
// # What a name is
//
// The name's own record says what the name is ([store.Kind]), from the first use on. A use of
// another kind returns a *[store.KindError] while somebody holds the name, or while a living
// session is on its roster or among its candidates. After that, the next use sets the kind, in the
// same write.
//
// A record without a kind was written by another program, or by a version without kinds. Then the
// roster at ".lock/NAME" is read, too, where those versions kept shares.
//
// # Limits
//
//   - A roster has room for [MaxShares] holders and waiters.
//   - Each acquisition and each release writes one record that all share. For a thousand
//     acquisitions a second, use many names.
//   - n waiters read up to n²/2 sessions every third of the TTL.
//   - If somebody deletes the record of a name, its shares are granted again while they are held.
//     Their tokens rise.
//
// # Tokens
//
// Tokens rise with every grant of a name. The shares of a semaphore are valid side by side, so the
// guarded resource has to keep a mark for each slot: [Hold.Sequencer] names slot 2 of "licences" as
// "licences#2". An online guard asks [Source].
//
// The readers of a read/write lock need no guard against each other. A writer's token is higher
// than that of any reader or writer before it, and of any lease that had the name before.
package lock
