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
// cost less, and it has no neighbour's limits.
//
// # Rows
//
// A record is in the neighbour's row, beside the neighbour's columns:
//
//	leaseName  leaseOwner  updatedTime  notes     Admiral's columns, for instance
//	leasehold_record                              the record, as JSON
//	leasehold_version                             id of the write
//	leasehold_columns                             the neighbour's columns as that write left them
//	leasehold_kept                                a token that the companion is known to have
//
// The row is ours as long as the neighbour's columns are what leasehold_columns says. Otherwise a
// neighbour wrote the row, and the columns alone count. A write replaces exactly the version that
// it was based on: its condition compares all columns, the neighbour's and ours. Attributes that
// neither side knows stay as they are.
//
// A free row is kept, in a form that the neighbour takes as free: an empty leaseOwner; no
// lease_version; isReleased. So renewal and release are one write of a row.
//
// # The companion
//
// A neighbour that takes a lease replaces the row, and one that releases it deletes it. So the
// token has a second row, the companion. Its key is that of the record behind "leasehold-token" and
// a tab. It holds the highest token of the key, and the record that had the token first. The rule
// is: no call returns a token before the companion has it.
//
//   - A claim writes the row first and then raises the companion's token. A crash in between leaves
//     a token that no caller got. The next reader of the row raises the companion before it returns
//     the record. It first reads the row again: if the companion is missing, the row may have been
//     deleted, and a companion alone is a free record. Another caller that settled the claim
//     meanwhile may delete the row between that read and the raise. That still leaves a companion:
//     a free record with its token, where ErrNotFound is right.
//   - A row that a neighbour deleted is read as free, with the companion's token, Past and Data.
//     Past and Data are from the beginning of our last term. Later changes are lost with the row.
//   - A neighbour's hold is read as a record with the companion's token plus one. It was a change
//     of holder, so an earlier token of ours isn't the highest any more. The next claim takes a
//     higher one.
//   - A claim can arrive so late that a whole other term came and went meanwhile and a neighbour
//     wiped the row. The companion's higher token shows that, and the claim is taken back. A claim
//     of a key without a row of ours may be overtaken before it knows which case it was. Then the
//     outcome is unknown.
//
// # Whose rule decides
//
// The neighbour judges our rows by its rule. We judge its rows by that rule too, and never more
// boldly.
//
// aws-lock-client: a row is abandoned when its recordVersionNumber has not changed for its
// leaseDuration on the observer's own clock. That is our rule as well. No wall clock is involved,
// and exclusion is as good as between two of ours.
//
// dynamodb-lease and admiral write a time of the holder's wall clock and compare it with the
// taker's. For them:
//
//   - Our rows, as the neighbour sees them: a row says that it expires TTL and Skew after the wall
//     clock's time before the write was sent, rounded up. The holder relies on TTL·(1−δ) of that.
//     So a neighbour may take a valid lease only if its wall clock is ahead of ours by more than
//     δ·TTL + Skew: 3 s at the defaults of the lease package, 12 s with a TTL of a minute.
//   - Their rows, as we see them: a row is abandoned when it has not changed for as long as
//     neighbours' holds last (the option TTL; Wait × Threshold). That counts on our own clock from
//     when we first saw the row. If its time was in the future at first sight, that time has to
//     pass, too. A wall clock that is wrong or set can make us late, not early, as long as the
//     option is right. In return, a row that was abandoned long ago is taken that much after its
//     first sight, not at once.
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
//     looks at is_healthy. A resource that tokens guard is safe from our late holders, not from the
//     neighbour's.
//   - Releases before 0.22.1 never take an expired row. They wait until DynamoDB has deleted it,
//     which may take days.
//   - DynamoDB may delete rows whose lease_expiry is past. Our free rows have none. An abandoned
//     row that is deleted is read as free, as it would be taken anyway.
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
//   - Leasehold's renewal comes within TTL/3, so keep TTL/3 below waitTimeInSeconds. An instance
//     that took over by such a write becomes active only when it has read itself back, a wait
//     later. With that setting, no other is active by then. An instance that believes that it was
//     active all the time overlaps for up to TTL/3.
//   - Its read is eventually consistent, of one page of a scan, and of a table that is always
//     called admiral-lease. Keep that table below 1 MB, or the instance may not see its own lease:
//     no other leases in it, and little Data.
//   - In a global table of eventual consistency, which its documentation recommends, conditions
//     hold in one Region only. Let all instances write in one Region, or use strong consistency.
//   - [HoldOwner] is an operator's hold. Leasehold doesn't take it, either.
//
// # Properties as a store
//
// Consistency: strong reads and conditional writes. Push: no, Wait polls. Age: none.
//
//	operation                                   requests
//	renew, release                              one conditional write
//	acquire                                     two conditional writes, of the row and of the companion
//	acquire a name that has no row              two strong reads more
//	read                                        one strong read
//	read a row that a neighbour wrote, or that  two strong reads
//	was acquired and not yet renewed
//	read a row that a neighbour deleted         four strong reads
//	list                                        reads the whole table
//
// Permissions: dynamodb:GetItem, UpdateItem, DeleteItem and Scan. Inspect and Check need
// DescribeTable and DescribeTimeToLive, too.
//
// A row can't be read when an attribute is missing, has the wrong type or makes no sense. That is
// an error that matches [store.ErrCorrupt] and names table, key and attribute. The row is left as
// it is.
package dynamotables
