// Package file keeps records in one SQLite file, which any number of processes of one machine share. It is the engine for a
// machine on its own: nothing to install, nothing to configure.
//
//	st, err := file.Open(ctx, "/var/lib/myprogram/leases.db", file.Options{})
//
// # What it relies on
//
//   - A local file system whose flock excludes and whose fsync reaches the disk. Open tries the lock, and refuses network
//     file systems; nobody can try the sync.
//   - SQLite, with its write-ahead log and synchronous=FULL: a write is acknowledged, and seen by others, when the log has
//     been synced.
//
// # Compare-and-swap
//
// Each write is an UPDATE, INSERT or DELETE whose condition is the version, inside BEGIN IMMEDIATE. That alone makes it safe.
// The rest is for speed, and so that no one starves, as some do in SQLite's own waiting:
//
//	callers ──► queue of renewals ──► gate ─┐
//	        └─► queue of takings  ──► gate ─┴─► lock of the file ──► one transaction with all that is queued
//
// The writes of a process share transactions. Processes take turns: at the gate of each queue they stand in line in the order
// in which they came (Linux; elsewhere roughly), and only the first of each line, and one that was on its own until then, wait
// for the lock of the file. So a renewal has a batch or two of takings before it at most, whatever is queued there. A version
// begins with the token of its record; that is how a write is known as a renewal or release before anything is read.
//
// A write whose context ends while it is queued is not done. A write whose commit fails is not done if the disk was full or
// read-only, and otherwise of unknown outcome: the log may have it when it is read after a crash.
//
// # Waiting
//
// A writer wakes the waiters of its own process directly, and those of others through FIFOs in the folder path.wake: see
// bell. A process that waits doesn't poll, but for one cheap look every 5 to 10 s, in case a writer was killed between its
// commit and the ringing. Where there are no FIFOs (Windows), or the folder can't be made, waiters look every 10 to 250 ms.
//
// # Who lives
//
// Each process that has the file open holds a lock on one byte of path.lock, drawn at random out of 2^60. A row names the byte of
// the process that its holder lives in (see [Store.PutOwn]) and the byte of the process that wrote it. The kernel drops the lock when the process
// has ended, and no process ever locks that byte again: so a free byte proves that the holder is gone, and its record's
// Age is [store.AgeGone]. Who waits for that ([Store.WaitHolder]) hears of it at once, through a FIFO that ends with the process.
//
//   - The proof follows the holder, whoever wrote the row last: an operator's break, a server's grant, a sweep. It is bound to
//     owner and token: what comes after a release, a hand-over or a claim has a proof of its own, or none.
//   - It belongs to the inode: it holds between containers with boot ids, mounts, processes and clocks of their own. A boot id decides nothing.
//   - It lasts to the end of the process, beyond Close: the holder may still count on its term. A stopped process lives; its
//     name is taken after its TTL, as ever. Children don't inherit it, except those that are given [Store.Proof].
//   - There is none on FUSE, on file systems that keep no time of birth, and on other systems than Linux. A row that
//     a version before this one wrote, and one whose path.lock has been removed, prove nothing. Then names are free after their TTL.
//
// While the process that wrote a row lives, and has the reader's time namespace, the age is the difference of two readings of one
// clock, which counts from the boot. The time is read under the lock, after the writer asked, so an age is never counted from before that. After
// the end of that process it is the smaller of the differences of that clock and of the wall clock: after a reboot the first shows
// less than has passed, and between machines the second is off by the difference of their clocks at most. In all other cases it is 0. So
// a wall clock that was set back delays those who look once; one that was set forward makes nobody early.
//
// # Files
//
//	path              the database: one table, records, with JSON bodies to read with any SQLite shell
//	path-wal path-shm its log and the index of that: part of the data
//	path.lock         empty; its flock orders the writers, locks on its bytes say who lives and who writes
//	path.wake/        gates and FIFOs: may be removed at any time
//
// All are of mode 0600 or 0700, less the umask. The schema has a number (PRAGMA user_version); a file of a newer one is
// refused. Copy the database with SQLite's own means (.backup, VACUUM INTO), not while it is in use with cp.
//
// # What it can't promise
//
//   - Anything between machines. A file on a network or cluster file system, or one image mounted by two virtual machines,
//     has no lock that both see. Open refuses those that it can tell.
//   - Liveness past a process that is stopped (SIGSTOP, a debugger, a frozen container) in the instant in which it holds
//     the lock: until it continues or is killed, every writer of the file waits, and leases run out. Nothing that is valid is
//     given away. Opening, reading and closing go on, and errors name the process and since when it has the lock. The instant is that of one transaction. A process stopped in line holds up those behind it for half a second.
//   - Safety against copies. A file that is put back from a copy has forgotten what came after; one that is copied to
//     another machine while its holders live is another store. A file that is removed or replaced under a process that
//     has it open, or its log, is noticed at that process's next write, and by reads within 0.1 s: the store ends, with an error
//     that says so. Until then another process may have opened the new file and found the names free there.
//   - One database under two names, by a hard link or by mounting the file alone: Open refuses both.
//   - That a call returns as soon as its context ends, or Close soon, while the disk itself hangs; nor that Close does while
//     another process holds the lock: it gives up after 5 s with an error that names it, and frees the rest when it can.
package file
