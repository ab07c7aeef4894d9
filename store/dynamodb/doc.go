// Package dynamodb keeps leases in a DynamoDB table: one row a name, one conditional write for each acquisition, renewal and
// release.
//
//	st, err := dynamodb.Open(ctx, client, "leasehold", dynamodb.Options{})
//
// The client is the caller's own, of the AWS SDK version 2, and stays open. `leasehold init dynamodb`, [Create] and
// [Template] make the table.
//
// # Consistency
//
// Reads are strongly consistent, and writes are conditional on the version that the row has, which is random and made anew
// by each write. DynamoDB judges a condition and writes the row in one step. That holds within one Region; in all Regions
// for a global table in strong mode (MRSC). In a global table in eventual mode (MREC) each Region judges its own copy and the
// last writer wins, so two Regions could hold one lease: [Open] refuses such a table unless Options.HomeRegion pins the one
// Region that is written in.
//
// No transactions are used, no indexes, and no time to live: DynamoDB deletes expired rows within days, and a row that is
// past any time is as good as another until then. The table is never scanned but for List.
//
// # Outcomes
//
// The client's own retries are turned off; the store makes up to 8 attempts, each limited by Options.Attempt, with pauses
// that double, at random by half, and end with ctx. Throttling and conflicts between Regions are waited out so. A write
// whose reply was lost is sent again with the same version: it is carried out once, and recognised by that version where it
// meets itself. What can't be settled is [store.ErrUnknownOutcome]. See internal/table.
//
// A failed condition brings the row that is there with it (ALL_OLD); from servers that leave it out it is read.
//
// # Cost
//
// A write takes a write unit for each KiB of the larger of the old and the new row, a strong read a read unit for each
// 4 KiB. A plain lease's row stays below 1 KiB with its past of 8 terms, which is deflated when it has to be, so that
// acquire, renew and release take one unit each; long owner names and Info, or Data, can make it two. A write that meets
// another row costs the same. List reads the whole table. [Cost] estimates a month.
//
// # Waiting
//
// DynamoDB doesn't push. A Wait polls, one read for all who wait for a key on this store, ever more slowly up to
// Options.PollMax: see [Store.Wait].
//
// # Age
//
// Off unless Options.ServerClock is set. Every row is written with a time, by the server's clock, that had not come when the
// write was sent: the date in the server's latest answer, rounded up, and what has passed since on the writer's own
// monotonic clock. A reader subtracts it from the date in the answer that it got, rounded down, and subtracts the bound. So
// no machine's wall clock is in it but the server's; if that one is set, or differs from host to host, by more than the
// bound says, an age can be too high, and a lease could be taken from a live holder. An age counts from when the write was
// sent, as a holder's own validity does; the bound has to cover a write's time under way for it to hold for its arrival, too.
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
// A row that can't be read is an error that names table, key and attribute; it is left as it is.
//
// # Permissions
//
// dynamodb:GetItem, PutItem, DeleteItem, DescribeTable and DescribeTimeToLive on the table; Scan for lists and sweeps;
// CreateTable for [Create]. [Store.Inspect] tries them.
//
// # What it can't promise
//
//   - Anything after the table was restored from a backup or deleted and made anew, but that tokens go on rising if wall
//     clocks are roughly right.
//   - Latency: a strong read or write in strong mode waits for another Region.
//   - That a release is noticed sooner than the polling does.
package dynamodb
