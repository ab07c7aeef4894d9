// Package flake makes ids out of time, a node's number, a sequence and metadata, with no call to anybody on the way.
//
//	g, err := flake.New[flake.ID](flake.Snowflake(), node, window, flake.Options{})
//	id, err := g.Next()
//	parts, err := flake.Decode(flake.Snowflake(), id) // the time, the node, and more
//
// A [Layout] says which bits of an id are what. It is data, and checked when it is made: there are Snowflake's, Sonyflake's, TSID's,
// Instagram's, MongoDB's ObjectId, one that JavaScript's numbers hold, and two that spread consecutive ids over the partitions of a
// database; or your own, as a [Spec], or as a text ([ParseLayout]). Ids of up to 64 bits are an [ID], an int64 that is never negative;
// longer ones, of up to 96 bits, an [ID96].
//
// An id doesn't say of which layout it is, and ids of two layouts can be alike: what has to be unique together has one layout.
//
// # Why no two ids are equal
//
// Two nodes differ in the node's bits. On one node, an id is made from a state: the pair of time and sequence, one number that
// only rises, by one atomic step for each id. The clock can push it up, and nothing takes it down. So a clock that is set back, a
// leap, a suspension or a clock that runs too fast makes no id twice. And when a node's number goes from one process to another,
// the [Window] keeps them apart: it says which times the process may stamp, its end is stored before ids are made in it, and
// the next holder's window begins there. [Generator.Next] fails past it. What a paused process makes when it wakes up is still
// in its own window, so nobody else can have made it.
//
//	             floor                                   ceiling
//	               │        ids of this process             │   ids of the next one
//	───────────────┼────────────────────────────────────────┼─────────────────────────► time in the id
//	                       state ──►
//
// # Time
//
// The clock isn't asked for every id, since that costs ten times as much as the id: it is read at the first id after a pause,
// and then once in a unit of the layout. So an id may have the unit of time before the clock's ([Options.Lag]), and an older one
// only if the runtime's timers are late. Under more load than the sequence has numbers for, the state runs ahead of the clock: by
// [Options.MaxAhead] at most. Then Next waits, holding no lock, for [Options.MaxWait] at most, and fails with an [AheadError].
// [Generator.Ahead] shows how far ahead it is. A clock that was set back looks just the same.
//
// The package imports nothing but the standard library.
package flake
