// Package dynamodb keeps leases in a DynamoDB table: one row a name, one conditional write for each
// acquisition, renewal and release.
//
//	st, err := dynamodb.Open(ctx, client, "leasehold", dynamodb.Options{})
//
// The client is the caller's own, of the AWS SDK version 2. The store doesn't close it. `leasehold
// init dynamodb`, [Create] and [Template] make the table.
//
// # Consistency
//
// Reads are strongly consistent. Writes are conditional on the version that the row has, which is
// random and new with each write. DynamoDB judges a condition and writes the row in one step.
//
//	one Region                                the guarantee holds
//	a global table in strong mode (MRSC)      it holds in all Regions
//	a global table in eventual mode (MREC)    each Region judges its own copy and the last writer wins, so two Regions could
//	                                          hold one lease. [Open] refuses the table unless Options.HomeRegion pins the one
//	                                          Region that is written in
//
// The store uses no transactions, no indexes, and no time to live. DynamoDB deletes expired rows
// within days, and until then such a row is as good as another. Only List scans the table.
//
// # Outcomes
//
// The store turns off the client's own retries. It makes up to 8 attempts, each limited by
// Options.Attempt. The pauses between them double, are random by half, and end with ctx. That
// covers throttling and conflicts between Regions.
//
// A write whose reply was lost is sent again with the same version. It is carried out once. Where
// it meets itself, that version identifies it. What can't be settled is [store.ErrUnknownOutcome].
// See internal/table.
//
// A failed condition brings the current row with it (ALL_OLD). The store reads the row from servers
// that leave it out.
//
// # Cost
//
// A write takes a write unit for each KiB of the larger of the old and the new row. A strong read
// takes a read unit for each 4 KiB. A plain lease's row stays below 1 KiB with its past of 8 terms,
// which is deflated when it has to be. So acquire, renew and release take one unit each. Long owner
// names and Info, or Data, can make it two. A write that meets another row costs the same. List
// reads the whole table. [Cost] estimates a month.
//
// # Waiting
//
// DynamoDB doesn't push. A Wait polls, ever more slowly up to Options.PollMax. All waiters for a
// key on this store share one read: see [Store.Wait].
//
// # Age
//
// Off unless Options.ServerClock is set. Every row is written with a time, by the server's clock,
// that had not come when the write was sent. It is the date in the server's latest answer, rounded
// up, plus what has passed since on the writer's own monotonic clock. A reader subtracts it from
// the date in its own answer, rounded down, and subtracts the bound.
//
// So the server's is the only wall clock in it. If that clock is set, or differs from host to host,
// by more than the bound says, an age can be too high. Then a lease could be taken from a live
// holder. An age counts from when the write was sent, as a holder's own validity does. For an age
// to hold from the write's arrival, too, the bound has to cover the time of the write on its way.
//
// # The row
//
//	key       S  the name: the partition key
//	owner     S  who holds it; missing when nobody does
//	token     N  the fencing token
//	ttl       S  how long the hold lasts past its last renewal, such as "15s"
//	session   S  key of the session that keeps it alive
//	acquired  S  when, by the holder's wall clock
//	mark, note   what an operator did to it
//	info      S  a JSON object: host, pid, …
//	past      S  a line for each ended term: token, beginning, how long, why, owner; or B, the same deflated
//	data      B  state of the primitive
//	nonce     S  id of the write
//	version   S  what the next write is conditional on
//	written   S  see Age
//	format    N  1
//
// A row that can't be read is an error that names table, key and attribute. The row is left as it
// is.
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
