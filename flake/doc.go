// Package flake makes ids out of time, a node's number, a sequence and metadata, without a call to
// any server.
//
//	g, err := flake.New[flake.ID](flake.Snowflake(), node, window, flake.Options{})
//	id, err := g.Next()
//	parts, err := flake.Decode(flake.Snowflake(), id) // the time, the node, and more
//
// A [Layout] says which bits of an id mean what. A layout is data, and is checked when it is made.
// There are those of Twitter, Sonyflake, TSID, Instagram and MongoDB's ObjectId. One fits a
// JavaScript number, and two spread consecutive ids over the partitions of a database. Your own is
// a [Spec], or a text ([ParseLayout]).
//
// Ids of up to 64 bits are an [ID], an int64 that is never negative. Longer ones, of up to 96 bits,
// are an [ID96].
//
// An id doesn't say which layout it has, so ids of two layouts can be alike. Ids that have to be
// unique together need one layout.
//
// # Why no two ids are equal
//
// Two nodes differ in the node's bits. On one node, an id is made from a state: the pair of time
// and sequence, as one number that only rises, by one atomic step for each id. The clock can raise
// the state, and nothing lowers it. So no id is made twice when the clock is set back, leaps or
// runs too fast, or when the machine is suspended.
//
// When a node's number goes from one process to another, the [Window] keeps the two apart. It says
// which times the process may use. Its end is stored before ids are made in it, and the next
// holder's window begins there. [Generator.Next] fails past the end. A paused process that resumes
// still makes ids in its own window, so no other process can have made them.
//
//	             floor                                   ceiling
//	               │        ids of this process             │   ids of the next one
//	───────────────┼────────────────────────────────────────┼─────────────────────────► time in the id
//	                       state ──►
//
// # Time
//
// The generator doesn't read the clock for every id, since that costs ten times as much as the id.
// It reads the clock at the first id after a pause, and then once in a unit of the layout. So an id
// may have the unit of time before the clock's ([Options.Lag]). It has an older one only if the
// runtime's timers are late.
//
// When ids are asked for faster than the sequence has numbers, the state runs ahead of the clock,
// by [Options.MaxAhead] at most. Then Next waits, holding no lock, for [Options.MaxWait] at most,
// and fails with an [AheadError]. [Generator.Ahead] returns how far the state is ahead. A clock
// that was set back has the same effect.
//
// The package imports only the standard library.
package flake
