// Package ids has a fleet make ids while everything goes wrong, for weeks of virtual time, and
// counts those that were made twice.
//
// A hundred nodes share the machine numbers of one pool. What they run is the production code:
// sessions and leases, identity.Claim and its windows, flake's generator. Processes crash, stop
// between any two steps, forget to release, and go on when their lease is somebody else's; machines
// are suspended, their clocks stand still, run wrong and are set by up to a day; the network
// delays, loses, repeats and delivers late; the store goes away. A process asks the lease nothing
// before it makes an id. Only the window stands in its way.
//
// Beside each generator runs Twitter's, on the same clock and the same lease, which it checks
// before each batch.
//
// # Why the count is exact
//
// Each id is kept, and none is sampled or hashed. flake.Decode takes an id apart into its node and
// the number that time and sequence make, and accepts it only if these make that id again: so two
// ids are equal exactly if their nodes and their numbers are. Ids in a row whose numbers follow one
// another by 1 are one span of numbers. All ids of a node less the numbers in the union of its
// spans are those that were there already.
package ids
