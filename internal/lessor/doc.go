// Package lessor takes, renews and frees names in the name of holders elsewhere, who have nothing but requests to a server: a
// shell script, a program in another language, a browser.
//
// A granted name is a lease like any other: a record whose owner is the holder, which expires unless it is renewed. The
// registry keeps nothing that must not be lost. It may be stopped at any moment, and another one on the same store, in
// another process, goes on: who holds what is in the store alone, and every write is a compare-and-swap.
//
// # One goroutine a name
//
// Whatever is asked about a name while it is busy is done by one goroutine, in order, so requests of one registry never
// conflict with each other:
//
//	Acquire ──► queue ──► first of the queue: drive.Want says what to read, write and wait for ──► granted
//	Renew, Release ──► drive.Named: one write each, against the version that was last seen; a conflict brings the present one
//
// Both are internal/drive, which package lease and the simulator run, too. A term is known here by its owner and its token, so that any
// registry on the store may renew it in turn. Each renewal counts in its nonce: one that finds the term older than this registry has
// seen it is refused, since that came back with a restored store. A registry that has not seen it later can't know.
//
// While the name is idle, whoever asks is that goroutine, for one change or for the first steps towards a grant: there is nobody to
// be woken. What has to be waited for, or isn't known when whoever asks has to leave, goes on in a goroutine of the name's own.
//
// A release with somebody in the queue is one write that ends one term and begins the next: nobody else is woken for it.
//
// # Order
//
// Who waits at one registry is served first come, first served. Several registries on one store know nothing of each other's
// queues; between them whoever is quick is next. A registry that is closed writes down who waits, for the next one to give those
// who come back their places: an order, no promise, and nothing that is missed when a process was killed.
//
// # Validity
//
// A grant counts from before the write that made it was sent, on the registry's clock; a holder elsewhere has to count from
// before it sent its own request. After a wait that is of no use: it renews, and counts from that.
package lessor
