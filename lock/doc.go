// Package lock has the locks that several may hold at a time, or that are taken in turn: a mutex, a read/write lock, a weighted
// semaphore, and several names at once. All are kept by a [lease.Session], on any store, and all give fencing tokens. When a
// holder dies, its share is free after the TTL of its session.
//
//	s, err := manager.OpenSession(ctx)
//	sem, err := lock.NewSemaphore(s, "licences", lock.SemaphoreOptions{Limit: 5})
//	h, err := sem.Acquire(ctx, 1)
//	…
//	err = h.Release(ctx)
//
// # How it is kept
//
// A mutex is a lease of the session. The others have a roster: the data of the name's own record list who holds which share, and who
// waits, in order. That of a fair mutex, ".lock/NAME", is beside it, and says only whose turn it is to take the lease. Every change is
// one compare-and-swap of that record:
//
//	            ┌ enough is free, and nobody waits before me ──► write me in, under the next token ──► held
//	read roster ┤
//	            └ else: write me at the end of the queue (if it is fair, or I have waited for a TTL), and wait for the roster to change
//	                    ──► read roster
//
// Who waits looks at the sessions of those before it, too, every third of the TTL. One that is gone, or has not been renewed
// for its TTL, is closed first (so that its process can't renew it any more) and then taken off the roster: the rule by which
// a lease is taken. Where the store proves that a process has ended ([driver.Witness]), those behind it hear of that, and look at once.
//
// A share is valid as long as its session is: [Hold.Check] is that of the session. A share is written under an id that was
// never used before, so a write of unknown outcome is recognised when the roster is read. One that is given up is taken
// off again, for as long as the session lives.
//
// # What a name is
//
// The name's own record says what the name is ([store.Kind]), and the first use of a name says so. While somebody holds it, or a
// session that lives is on its roster or among its candidates, a use of another kind is a *[store.KindError]. After that it becomes
// what it is used as next, in the same write. A record without a kind is one that another program wrote, or a version that knew none:
// then the roster at ".lock/NAME" is read, too, where those kept shares.
//
// # Limits
//
// A roster has room for [MaxShares] holders and waiters. Each acquisition, and each release, is a write of one record that all
// share: a lock with a thousand acquisitions a second is better made of many names. n who wait read up to n²/2 sessions every
// third of the TTL. If somebody deletes the record of a name, its shares are granted again while they are held; their tokens rise.
//
// # Tokens
//
// Tokens rise with every grant of a name. The shares of a semaphore are valid side by side, so what they guard has to keep a mark
// for each slot: [Hold.Sequencer] names slot 2 of "licences" as "licences#2". An online guard asks [Source]. The readers of a read/write lock need no guard
// against each other; a writer's token is higher than that of any reader or writer before it, and than that of any lease of that name
// before it was shared.
package lock
