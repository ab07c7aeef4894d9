// Package dynamodb keeps leases in a DynamoDB table: one row a name, one conditional write for each
// acquisition, renewal and release.
//
//	st, err := dynamodb.Open(ctx, client, "leasehold", dynamodb.Options{})
//
// The client is the caller's own, of the AWS SDK version 2. The store doesn't close it. `leasehold
// init dynamodb`, [Create] and [Template] make the table. docs/how-stores-work.md describes the
// row.
//
// # Consistency
//
// Reads are strongly consistent. Writes are conditional on the version that the row has. DynamoDB
// judges a condition and writes the row in one step.
//
//	one Region                                the guarantee holds
//	a global table in strong mode (MRSC)      it holds in all Regions
//	a global table in eventual mode (MREC)    each Region judges its own copy and the last writer wins, so two Regions could
//	                                          hold one lease. [Open] refuses the table unless Options.HomeRegion pins the one
//	                                          Region that is written in
//
// # Outcomes
//
// The store turns off the client's own retries. It makes up to 8 attempts, each limited by
// Options.Attempt. The pauses between them double, are random by half, and end with ctx. That
// covers throttling and conflicts between Regions.
//
// A creation that got no answer is not sent again: its first copy could arrive after the record was
// deleted, and bring it back. The store looks for its row once. What can't be settled is
// [store.ErrUnknownOutcome], and the caller settles it.
//
// # Cost
//
// A write takes a write unit for each KiB of the larger of the old and the new row. A strong read
// takes a read unit for each 4 KiB. A plain lease's row stays below 1 KiB with its past of 8 terms.
// So acquire, renew and release take one unit each. Long owner names and Info, or Data, can make it
// two. A write that meets another row costs the same. List reads the whole table. [Cost] estimates
// a month.
//
// DynamoDB doesn't push. A Wait polls, ever more slowly up to Options.PollMax. All waiters for a
// key on this store share one read: see [Store.Wait].
//
// # Age
//
// Off unless Options.ServerClock is set, which bounds the error of the server's clock. If that
// clock is set, or differs from host to host, by more than the bound says, an age can be too high.
// Then a lease could be taken from a live holder. An age counts from when the write was sent, as a
// holder's own validity does. For an age to hold from the write's arrival, too, the bound has to
// cover the time of the write on its way.
//
// # Permissions
//
// dynamodb:GetItem, PutItem, DeleteItem, DescribeTable and DescribeTimeToLive on the table; Scan
// for lists and sweeps; CreateTable for [Create]. [Store.Inspect] tries them.
//
// # What it can't guarantee
//
//   - Anything after the table was restored from a backup, or deleted and created again. Only
//     tokens still rise, if wall clocks are roughly right.
//   - Latency: a strong read or write in strong mode waits for another Region.
//   - That a release is noticed sooner than the polling does.
package dynamodb
