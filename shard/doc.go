// Package shard divides a space among workers: each name of a list, or each part of a hashed key
// space, has one owner at a time, under a fencing token.
//
//	w, err := shard.Join(ctx, manager, shard.Space{Name: "orders", Names: partitions}, shard.Worker{
//		Start: func(ctx context.Context, s *shard.Slice) error { return consume(ctx, s) },
//	})
//	token, err := w.Check("p7") // before each write; else a *WrongOwner says who owns it
//	err = w.Leave(ctx)          // drains, hands all over, and returns when nothing is left
//
// # What it rests on
//
// A slice belongs to the session that the map names. Only that session passes it on, or another
// worker takes it after that session was closed, as for every lease of a session. So the owner may
// act as long as its session is valid.
//
// The assigner is the worker that holds the lease "shard/NAME". It only proposes, so two at a time
// do no harm, and without one the map stays as it is. docs/shard.md shows how a slice moves.
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
//   - Balance is by load where workers call [Owner.Report], and else by the number of slices. A key
//     has one owner: a key with more load than a worker bears isn't spread.
//   - Slices of two records of the map don't merge.
//   - A worker follows each record that it was ever named in, until its session ends.
//   - The callbacks have to return when their contexts end. A worker whose session is about to end
//     keeps it open until all have returned, so that nobody acts beside them.
package shard
