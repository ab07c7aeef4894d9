// Package file keeps records in one SQLite file, which any number of processes of one machine
// share. It is the engine for a single machine: nothing to install, nothing to configure.
//
//	st, err := file.Open(ctx, "/var/lib/myprogram/leases.db", file.Options{})
//
// # What it relies on
//
//   - A local file system whose flock excludes and whose fsync reaches the disk. Open tries the
//     lock, and refuses network file systems. It can't try the sync.
//   - SQLite, with its write-ahead log and synchronous=FULL. A write is acknowledged, and seen by
//     others, when the log has been synced.
//
// # Compare-and-swap
//
// Each write is an UPDATE, INSERT or DELETE whose condition is the version, inside BEGIN IMMEDIATE.
// That alone makes it safe. The rest is for speed, and so that no process starves, as some do in
// SQLite's own waiting:
//
//	callers ──► queue of renewals     ──► gate ─┐
//	        └─► queue of acquisitions ──► gate ─┴─► lock of the file ──► one transaction with all that is queued
//
// The writes of a process share transactions. Processes take turns. At the gate of each queue they
// stand in line in the order of their arrival (Linux; elsewhere roughly). Only the first of each
// line waits for the lock of the file, and a process that was alone until then. So a renewal waits
// for a batch or two of acquisitions at most, whatever is queued there. A version begins with the
// token of its record, which identifies a write as a renewal or release before anything is read.
//
// A write whose context ends while it is queued is not done. A write whose commit fails is not done
// if the disk was full or read-only. Otherwise it has an unknown outcome: the log may have it when
// it is read after a crash.
//
// # Waiting
//
// A writer wakes the waiters of its own process directly, and those of other processes through
// FIFOs in the folder path.wake: see bell. A waiting process doesn't poll. It makes only one cheap
// look every 5 to 10 s, in case a writer was killed between its commit and the wake-up. Where there
// are no FIFOs (Windows), or the folder can't be made, waiters look every 10 to 250 ms.
//
// # Which processes live
//
// Each process that has the file open holds a lock on one byte of path.lock, drawn at random out of
// 2^60. A row names the byte of the process in which its holder lives (see [Store.PutOwn]), and the
// byte of the process that wrote it. The kernel drops the lock when the process has ended, and no
// process ever locks that byte again. So a free byte proves that the holder is gone, and its
// record's Age is [store.AgeGone]. A waiter for that ([Store.WaitHolder]) learns of it at once,
// through a FIFO that ends with the process.
//
//   - The proof follows the holder, whichever process wrote the row last: an operator's break, a
//     server's grant, a sweep. It is bound to owner and token. After a release, a hand-over or a
//     claim, a row has a proof of its own, or none.
//   - The proof belongs to the inode. It holds between containers with boot ids, mounts, processes
//     and clocks of their own. A boot id decides nothing.
//   - The proof lasts to the end of the process, beyond Close, because the holder may still rely on
//     its term. A stopped process lives; its name is taken after its TTL, as ever. Children don't
//     inherit the proof, except those that get [Store.Proof].
//   - There is no proof on FUSE, on file systems that keep no time of birth, and on systems other
//     than Linux. A row of an earlier version proves nothing, nor does one whose path.lock was
//     removed. Then names are free after their TTL.
//
// # Age
//
//	the process that wrote the row            age
//	lives, in the reader's time namespace     the difference of two readings of one clock, which counts from the boot
//	has ended                                 the smaller of the differences of that clock and of the wall clock
//	anything else                             0
//
// The writer reads the time under the lock, after the write was asked for, so an age never counts
// from before that. After a reboot the first clock shows less than has passed. Between machines,
// the wall clock is off by the difference of their clocks at most. So a wall clock that was set
// back delays processes that look once. One that was set forward makes no process early.
//
// # Files
//
//	path              the database: one table, records, with JSON bodies to read with any SQLite shell
//	path-wal path-shm its log and the index of that: part of the data
//	path.lock         empty; its flock orders the writers, locks on its bytes say who lives and who writes
//	path.wake/        gates and FIFOs: may be removed at any time
//
// All are of mode 0600 or 0700, less the umask. Those of a [Group] have its mode, whatever the
// umask of the member who makes them: they take it from their folder, which is setgid, and SQLite
// takes that of its log from the database. The schema has a number (PRAGMA user_version), and Open
// refuses a file of a newer one. Copy the database with SQLite's own means (.backup, VACUUM INTO),
// not with cp while it is in use.
//
// # What it can't guarantee
//
//   - Anything between machines. A file on a network or cluster file system, or one image mounted
//     by two virtual machines, has no lock that both see. Open refuses those that it recognises.
//   - Liveness past a process that is stopped (SIGSTOP, a debugger, a frozen container) while it
//     holds the lock, which is the time of one transaction. Until it resumes or is killed, every
//     writer of the file waits, and leases expire. Nothing that is valid is given away. Opening,
//     reading and closing continue, and errors name the process and the time since which it has the
//     lock. A process that is stopped in line delays those behind it by half a second.
//   - Safety against copies. A file that is restored from a copy has forgotten what came after. A
//     file that is copied to another machine while its holders live is another store.
//   - Safety against a file that is removed or replaced under a process that has it open, or its
//     log. That process notices at its next write, and by reads within 0.1 s. Then the store ends,
//     with an error that says why. Until then another process may have opened the new file and
//     found the names free there.
//   - One database under two names, by a hard link or by mounting the file alone: Open refuses
//     both.
//   - That a call returns as soon as its context ends, or that Close returns soon, while the disk
//     itself hangs. While another process holds the lock, Close gives up after 5 s with an error
//     that names that process, and frees the rest when it can.
package file
