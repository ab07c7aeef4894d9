// Package shard divides a space among workers: each name of a list, or each part of a hashed key
// space, has one owner at a time, under a fencing token.
//
//	w, err := shard.Join(ctx, manager, shard.Space{Name: "orders", Names: partitions}, shard.Worker{
//		Start: func(ctx context.Context, s *shard.Slice) error { return consume(ctx, s) },
//	})
//	token, err := w.Check("p7") // before each write; else a *WrongOwner says who owns it
//	err = w.Leave(ctx)          // drains, hands all over, and returns when nothing is left
//
// # How it works
//
// Each worker has a session. The map is cut into records, each with the slices of a part of the
// space: who owns a slice, under which token, and to whom it is to go. All changes are
// compare-and-swaps of such a record.
//
//	assigner: proposes ──► successor: prepares ──► owner: drains, stops, passes on under a higher token ──► successor: starts
//
// A slice belongs to the session that the record names. Only that session passes it on, or another
// worker takes it after that session was closed, as for every lease of a session. So the owner may
// act as long as its session is valid. It acts on its own acknowledged write, or on a read that no
// failover takes back.
//
// The assigner is the worker that holds the lease "shard/NAME". It only proposes, so two at a time
// do no harm, and without one the map stays as it is.
//
// # Tokens
//
// Each change of owner, each split and each merge raises the token over all that the record has
// ever had. So the token of a key never falls, whatever slice the key is in. A guard of a hashed
// space keeps its mark per row.
//
// # Limits
//
//   - A slice has no owner while it moves: for a write, a push and a read.
//   - The default strategy counts slices, weighted by capacity. It doesn't measure load.
//   - Slices of two records of the map don't merge.
//   - A worker follows each record that it was ever named in, until its session ends.
//   - The callbacks have to return when their contexts end. A worker whose session is about to end
//     keeps it open until all have returned, so that nobody acts beside them.
package shard
