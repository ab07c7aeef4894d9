// Package sim puts the lease protocol through every fault that it can think of, in virtual time,
// from a seed.
//
// The nodes of a [Run] run internal/drive, as package lease and the server do, and by it
// internal/protocol, the code that decides in production, from one event loop: so a run is replayed
// exactly by its seed. Their clocks run at different rates, jump and are set; they are paused,
// suspended, killed, restarted and cloned. The network delays, drops, duplicates and delivers late;
// the store rejects, goes away, restarts, comes back empty or from a backup, and fails over to a
// replica that has not heard of what reads were shown. Some programs have a server take, renew and
// free names for them, as internal/lessor does, and the next one waits there. Some follow: the
// store pushes them the changes of a name, and of the session that keeps it. Operators break
// leases, holders hand them over, and programs call in odd orders.
//
// After every event the invariants are checked; see invariants.go. When the faults stop, everyone
// who still wants a name has to get it.
package sim
