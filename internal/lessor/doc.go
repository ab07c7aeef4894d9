// Package lessor takes, renews and frees names in the name of holders elsewhere, who have nothing
// but requests to a server. Such a holder is a shell script, a program in another language, or a
// browser.
//
// A granted name is a lease like any other: a record whose owner is the holder, which expires
// unless it is renewed. The registry keeps nothing that must not be lost. It may be stopped at any
// moment. Another registry on the same store, in another process, then continues: only the store
// knows who holds what, and every write is a compare-and-swap.
//
// # One goroutine a name
//
// While a name is busy, one goroutine does all that is asked about the name, in order. So requests
// of one registry never conflict with each other:
//
//	Acquire ──► queue ──► first of the queue: drive.Want says what to read, write and wait for ──► granted
//	Renew, Release ──► drive.Named: one write each, against the version that was last seen; a conflict brings the present one
//
// Both are internal/drive, which package lease and the simulator run, too. The registry knows a
// term by its owner and its token, so that any registry on the store may renew the term in turn.
// Each renewal counts in its nonce. A registry refuses a renewal that finds the term older than the
// registry has seen it: that term came back with a restored store. A registry that has not seen the
// term later can't know.
//
// While the name is idle, the caller's goroutine does that work, for one change or for the first
// steps towards a grant. Then nobody has to be woken. Some work has to be waited for, or has an
// unknown outcome when the caller has to leave. A goroutine of the name's own continues that work.
//
// A release with a waiter in the queue is one write that ends one term and begins the next. No
// other waiter is woken for it.
//
// # Order
//
// Each registry serves its waiters first come, first served. Several registries on one store know
// nothing of each other's queues. Between the registries, the quickest waiter is next. A registry
// that is closed writes its waiters down. The next registry then gives waiters who come back their
// places. That order is no promise, and nothing depends on it: a process that was killed wrote
// nothing down.
//
// # Validity
//
// A grant counts from before the write that made it was sent, on the registry's clock. A holder
// elsewhere has to count from before it sent its own request. After a wait such a count has no
// value: the holder renews, and counts from the renewal.
package lessor
