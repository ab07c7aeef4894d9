// Package sightings keeps, from one process to the next on the same machine, what each has seen of names that others hold.
//
// On a store that vouches for no age, such as etcd, a process learns that a holder is dead by watching its record for a whole TTL. A
// process that looks once and ends, as `leasehold run -n` does, never watches for so long. A [Book] lets the next process continue the
// observation: the record showed no sign of life since the first look, by a clock that both processes read. Give one to
// lease.Options.Sightings.
//
// # When a sighting counts
//
// A sighting says which write of a holder was seen, and since when. It never lets anybody take a name by itself: the process reads the
// record, the record must still be that very write (nonce, holder, token, session), and the write that takes the name is conditional on
// the version that was read. The time between is measured on CLOCK_BOOTTIME, never on the wall clock. So a sighting counts only where that
// clock is the same one:
//
//   - in the same boot of the same machine, by boot id and machine id, and in the same time namespace. After a reboot it is forgotten.
//   - in a folder that no other machine can write to: on a local file system. A home folder on NFS keeps no sightings, since two clones of
//     a virtual machine have one boot id and two clocks.
//   - in a file of this user's own, that nobody else may write to or read, in such a folder.
//
// Whatever can't be read, or is not certain, is forgotten. That costs a wait of one more TTL, and no safety.
//
// A store that is restored from a backup while holders live brings back old writes of theirs, and a sighting may have seen these. Holders
// have to be stopped before, as for every restore: until they notice, only tokens tell the old term from the new one.
//
// Sightings are kept on Linux only. Elsewhere [Book.Save] returns an error, and a Book works for its own process.
package sightings
