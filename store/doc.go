// Package store is the contract between ownership and the place where ownership is kept.
//
// An engine keeps [Record] values under keys, and changes one of them at a time by
// compare-and-swap. Leasehold asks no more of it: no transaction over several keys, no server-side
// expiry, no lock. The lease package decides what a record means: who holds a name, until when, who
// may take it.
//
// # Outcomes
//
// A write has one of three outcomes, and its error tells which one:
//
//   - done: no error. The record that is returned is the stored one.
//   - not done, now or later: any error that does not match [ErrUnknownOutcome]. A *[ConflictError]
//     carries the record that was there instead, so that the caller needs no second read.
//   - unknown: an error that matches [ErrUnknownOutcome]. The write may have happened, may happen
//     later, or never. A request that was cut off, a reply that was lost and a context that ended
//     halfway all have an unknown outcome. A client may send a request again by itself. The refusal
//     of one copy is an unknown outcome, too, when another copy may still be on its way. An engine
//     never reports an unknown outcome as not done.
//
// # What a read is worth, and how an unknown outcome is settled
//
// The caller of a write of unknown outcome reads the record. If the record bears the nonce of that
// write, the write landed. Where a read shows what a failover may take away, the nonce is no proof.
// Examples are a commit whose wait for a synchronous standby was cancelled, and a write that no
// replica acknowledged.
//
// There the engine remembers the writes of its handle whose outcome is unknown. It shows a record
// that bears one of their nonces only behind a write that waits for the same guarantee.
// [Properties.Settle] says which of the two applies. Another handle that meets such a record may
// see what is lost later. That harms no caller who writes before acting: the write is acknowledged
// together with all that it stands on, or not at all.
//
// A caller who acts on a read alone, as a guard does, needs a durable read: [Confirm].
// [Properties.Read] says what a plain Get is worth: durable, leader or local.
//
// # Versions
//
// Every stored version of a record has a Version that its key never has again, not even after the
// record was deleted and made again. So a compare-and-swap that arrives late finds another version
// and does nothing.
//
// # Time
//
// An engine's own expiry (a TTL attribute, a session, a lease of its own) may collect garbage. It
// never proves that a holder is gone. An engine may vouch for a record's [Record.Age].
//
// # Engines
//
// Package store/driver has what an engine's author needs beside this contract, and says in which
// order to implement it. The conformance suite is in store/storetest. An engine is right when it
// passes the suite.
package store
