// Package sightings keeps what a process has seen of names that others hold, for the next process
// on the same machine.
//
// Some stores, such as etcd, vouch for no age. There a process learns that a holder is dead by
// watching its record for a whole TTL. A process that looks once and ends, as `leasehold run -n`
// does, never watches that long. A [Book] lets the next process continue the observation: the
// record showed no sign of life since the first look, by a clock that both processes read. Give a
// Book to lease.Options.Sightings.
//
// # When a sighting counts
//
// A sighting says which write of a holder was seen, and since when. It never lets a process take a
// name by itself. The process reads the record, and the record must still be that very write
// (nonce, holder, token, session). The write that takes the name is conditional on the version that
// was read.
//
// The time between is measured on CLOCK_BOOTTIME, never on the wall clock. So a sighting counts
// only where that clock is the same:
//
//   - In the same boot of the same machine, by boot id and machine id, and in the same time
//     namespace. A reboot ends all sightings.
//   - In a folder that no other machine can write to: on a local file system. A home folder on NFS
//     keeps no sightings, since two clones of a virtual machine have one boot id and two clocks.
//   - In a file of this user's own, in such a folder, that no other user may write to or read.
//
// Whatever can't be read, or is not certain, is forgotten. That costs a wait of one more TTL, and
// no safety.
//
// A store that is restored from a backup while holders live brings back old writes of theirs, and a
// sighting may have seen these. Stop the holders before, as for every restore. Until they notice,
// only tokens tell the old term from the new one.
//
// Sightings are kept on Linux only. Elsewhere [Book.Save] returns an error, and a Book works for
// its own process.
package sightings
