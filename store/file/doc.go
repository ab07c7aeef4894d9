// Package file keeps records in one SQLite file, which any number of processes of one machine
// share. It is the engine for a single machine: nothing to install, nothing to configure.
//
//	st, err := file.Open(ctx, "/var/lib/myprogram/leases.db", file.Options{})
//
// docs/how-stores-work.md describes the files, and how processes take turns and wake each other.
//
// # What it relies on
//
//   - A local file system whose flock excludes and whose fsync reaches the disk. Open tries the
//     lock, and refuses network file systems. It can't try the sync.
//   - SQLite, with its write-ahead log and synchronous=FULL. A write is acknowledged, and seen by
//     others, when the log has been synced.
//
// # Outcomes
//
// A write whose context ends while it is queued is not done. A write whose commit fails is not done
// if the disk was full or read-only. Otherwise it has an unknown outcome: the log may have it when
// it is read after a crash.
//
// # Which processes live
//
// On Linux, the kernel's locks prove that the process of a holder has ended ([Store.PutOwn]). Then
// the record's Age is [store.AgeGone], and a waiter for that ([Store.WaitHolder]) learns of it at
// once.
//
//   - The proof follows the holder, whichever process wrote the row last: an operator's break, a
//     server's grant, a sweep. It is bound to owner and token. After a release, a hand-over or a
//     claim, a row has a proof of its own, or none.
//   - It holds between containers with boot ids, mounts, processes and clocks of their own.
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
// A wall clock that was set back delays processes that look once. One that was set forward makes no
// process early.
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
