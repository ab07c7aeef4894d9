// Package dynamotables keeps leases in the tables of other lock libraries, in their own rows. So a
// team can move to Leasehold while old and new run side by side on one table and exclude each
// other:
//
//   - [Admiral]: the disaster-recovery leases of Istio's Admiral, schema "admiral";
//   - [DynamoDBLease]: the Rust crate dynamodb-lease, schema "dynamodb-lease";
//   - [AWSLockClient]: the AWS lock client for Java and dynamolock for Go, schema
//     "aws-lock-client".
//
// Each is a store like any other: leases, elections and locks work on it as elsewhere. When the
// last of the neighbours is gone, move to a table of Leasehold's own (package dynamodb). Its writes
// cost less, and it has no neighbour's limits. docs/how-stores-work.md describes the rows, and how
// tokens outlive a neighbour's writes.
//
// # Whose rule decides
//
// The neighbour judges our rows by its rule. We judge its rows by that rule too, and never more
// boldly. A row of aws-lock-client is abandoned when its recordVersionNumber has not changed for
// its leaseDuration on the observer's own clock: exclusion is as good as between two of ours.
//
// dynamodb-lease and admiral compare a time of the holder's wall clock with the taker's. So such a
// neighbour may take a valid lease of ours only if its wall clock is ahead of ours by more than
// δ·TTL + Skew: 3 s at the defaults of the lease package, 12 s with a TTL of a minute. A wall clock
// that is wrong can make us late, not early, as long as the option TTL, or Wait and Threshold, is
// right. A neighbour's row is taken that much after we first saw it, however old it is.
//
// What a session keeps is not renewed, and neighbours know no sessions. So such rows are written so
// that no neighbour takes them for a year. When all processes of Leasehold's are gone, neighbours
// stay locked out until one comes back or an operator deletes the row. Acquire what you share with
// neighbours without a session.
//
// # What the neighbours' own rules limit
//
// dynamodb-lease:
//   - Its rows don't say who holds them: the owner is "dynamodb-lease".
//   - Its client doesn't stop at its expiry, and has no token: it believes in its lease until it
//     looks at is_healthy. Tokens guard a resource from our late holders, not from the neighbour's.
//   - Releases before 0.22.1 never take an expired row. They wait until DynamoDB has deleted it,
//     which may take days.
//
// aws-lock-client:
//   - It has no token, and counts on its lease to the last millisecond: no margin on its side.
//   - Java and Go clients can't read each other's leaseDuration. Rows of either are read. What is
//     written is what the table's rows have, or what an option says.
//   - Java's client deletes the row on release by default, with everything else that the row keeps.
//
// admiral:
//   - Its writes are unconditional. An instance that read the row, was delayed and then writes,
//     wipes whatever has happened since. Two may be active until the loser finds out at its next
//     read or renewal. No reader of the table can prevent that.
//   - Keep TTL/3 below waitTimeInSeconds: then no other is active when an instance that took over
//     by such a write becomes active. One that believes that it was active all the time overlaps
//     for up to TTL/3.
//   - Its read is of one page of a scan, of a table that is always called admiral-lease. Keep that
//     table below 1 MB, with no other leases and little Data, or the instance may not see its own.
//   - In a global table of eventual consistency, which its documentation recommends, conditions
//     hold in one Region only. Let all instances write in one Region, or use strong consistency.
//   - [HoldOwner] is an operator's hold. Leasehold doesn't take it, either.
//
// # Cost and permissions
//
// Reads are strong, and a Wait polls. Age: none. Renew and release are one conditional write,
// acquire is two. A read is one strong read, two where a neighbour wrote the row.
//
// Permissions: dynamodb:GetItem, UpdateItem, DeleteItem and Scan. Inspect and Check need
// DescribeTable and DescribeTimeToLive, too.
package dynamotables
