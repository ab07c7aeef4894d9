// Package fencedynamodb guards items in DynamoDB: the check of the fencing token is a condition of the caller's own write, so
// that nothing can come between check and write. A write of an earlier term, or of another holder of the same term, is not done,
// and the error is a *[fence.StaleError], without a second request.
//
// [Put] and [Update] keep the mark, the highest token that was admitted and whose it was, on the guarded item itself, in two
// attributes. That costs nothing: it is the same request and the same write.
//
//	out, err := fencedynamodb.Update(ctx, client, l.Sequencer(), &dynamodb.UpdateItemInput{
//		TableName: &table, Key: key, UpdateExpression: aws.String("SET balance = balance - :n"), …
//	})
//
// An item that is deleted forgets its mark, and a write that was delayed makes it anew. Where items are deleted, or where one
// write changes several, [Guard.Transact] puts the check of a mark with an item of its own into the caller's transaction. The
// two ways know nothing of each other: an item is guarded by one of them.
//
// The client sends a request again when the answer is lost, as it does without a guard. Then a refusal is about the last copy, and
// one before may have been done, before the later term began. A transaction's second copy is recognized.
//
// What writes to the items without this package is not guarded. In a global table the check holds among the writers of one
// Region, unless its consistency is strong.
package fencedynamodb
