// Package fencedynamodb guards items in DynamoDB. The check of the fencing token is a condition of
// the caller's own write, so nothing can come between check and write. A write of an earlier term,
// or of another holder of the same term, is not done. The error is a *[fence.StaleError], without a
// second request.
//
// [Put] and [Update] keep the mark on the guarded item itself, in two attributes. The mark is the
// highest token that was admitted, with its holder. It costs nothing, since it is part of the same
// request and the same write.
//
//	out, err := fencedynamodb.Update(ctx, client, l.Sequencer(), &dynamodb.UpdateItemInput{
//		TableName: &table, Key: key, UpdateExpression: aws.String("SET balance = balance - :n"), …
//	})
//
// An item that is deleted forgets its mark, and a delayed write makes the item again. Where items
// are deleted, or one write changes several, use [Guard.Transact]. It puts the check of a mark with
// an item of its own into the caller's transaction. The two ways know nothing of each other, so
// guard an item by one of them.
//
// The client sends a request again when the answer is lost, with a guard as without. Then a refusal
// is about the last copy. An earlier copy may have been done, before the later term began. A
// transaction's second copy is recognised.
//
// A write without this package is not guarded. In a global table the check holds among the writers
// of one Region, unless the table's consistency is strong.
package fencedynamodb
